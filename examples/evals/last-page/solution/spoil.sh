#!/bin/bash
# Adds a page, which is empty where the last one was full.
sed -i 's|return len(items) // size|return len(items) // size + 1|' pages.py
