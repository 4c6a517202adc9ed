"""The terminal program `msp-bridge browse`: the last results to look through and to work on, by keys alone.

`listing` and `detail` say what is shown, and know no terminal. The other modules show it, with `textual`, which is an
extra: nothing but the command imports them.
"""
