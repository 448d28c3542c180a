package main

import "net"

// parseMAC and parseIP are for texts of tests.
func parseMAC(s string) net.HardwareAddr {
	m, err := net.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return m
}

func parseIP(s string) net.IP { return net.ParseIP(s) }
