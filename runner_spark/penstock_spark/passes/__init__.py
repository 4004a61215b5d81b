"""The passes of the compiler, one in each module; `compiler.py` has their order."""
