"""The scripting face: generate, stream and objects, over the client."""
