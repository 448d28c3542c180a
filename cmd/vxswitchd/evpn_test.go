package main

import "testing"

func TestEVPNPasswordFile(t *testing.T) {
	testPasswordFile(t, "evpn", `"as": 65000, "routerID": "127.0.0.1", "peers": [{"address": "127.0.0.9", "as": 65000}]`)
}
