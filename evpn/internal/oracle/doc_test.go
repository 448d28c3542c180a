// Package oracle holds what the speaker writes and reads against gobgp's package for messages of BGP, and against Wireshark's dissector:
// routes of types 1 to 5 with all attributes and communities that the speaker has, with random values of fixed seeds. It is a module of its
// own so that importers of evpn do not get gobgp's dependencies.
package oracle
