"""What the project's own interpreter runs: standard library and pytest only; nothing imports msp_bridge."""
