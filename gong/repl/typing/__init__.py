"""What is typed: keys, the prompt, paste, completion, files and pictures that are named."""
