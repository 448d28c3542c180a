//go:build !linux

package bgp

import (
	"errors"
	"net/netip"
)

func setPassword(uintptr, netip.Addr, string) error {
	return errors.New("password: TCP MD5 needs Linux")
}

func setTTL(uintptr, bool, uint8) error { return errors.New("hops: TTL security needs Linux") }
