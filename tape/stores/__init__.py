"""The store of other SDKs: what they keep of a session, on a tape. Loaded only where it is used."""
