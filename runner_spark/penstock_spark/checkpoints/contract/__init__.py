"""The signature of a plan, and its comparison with another: does the state fit the pipeline?"""
