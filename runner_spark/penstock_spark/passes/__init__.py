"""The passes of the compiler, one to a module; `compiler.py` has their order."""
