"""The Converse API of Bedrock."""
