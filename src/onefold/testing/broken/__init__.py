"""testing.broken - sound parts with one fault each, so that whatever holds the sound ones can prove its teeth.

For: twins of stores, kernels, hosts, ports and reflexes, listed by name, and the checks that find each.
Never: used by anything but a test of a test; broken in two places at once.
"""
