package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/internal/hostaddr"
	vswitch "github.com/vxswitch/vxswitch/switch"
	"github.com/vxswitch/vxswitch/underlay"
	"github.com/vxswitch/vxswitch/vtep"
)

// Each of these returns the parser of one kind of value. Its error says what is
// allowed; package flag says which flag it was and what was given.

// number sets v to a number of lo to hi.
func number[T ~int | ~uint16 | ~uint32](lo, hi uint64, v *T) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil || n < lo || n > hi {
			return fmt.Errorf("allowed are %d to %d", lo, hi)
		}
		*v = T(n)
		return nil
	}
}

// inheritable sets v to a number of lo to hi in steps, or to vtep.Inherit.
func inheritable(lo, hi, step uint64, v *vtep.Value) func(string) error {
	return func(s string) error {
		if s == "inherit" {
			*v = vtep.Inherit
			return nil
		}
		n, err := strconv.ParseUint(s, 0, 64)
		switch {
		case err == nil && n >= lo && n <= hi && n%step == 0:
			*v = vtep.Value(n)
			return nil
		case step > 1:
			return fmt.Errorf("allowed are %d to %d in steps of %d, and inherit", lo, hi, step)
		}
		return fmt.Errorf("allowed are %d to %d, and inherit", lo, hi)
	}
}

// choice sets v to the position of a word.
func choice[T ~uint8](v *T, words []string) func(string) error {
	return func(s string) error {
		for i, w := range words {
			if s == w {
				*v = T(i)
				return nil
			}
		}
		return fmt.Errorf("allowed are %s", strings.Join(words, ", "))
	}
}

// prefixes sets v to addresses of hosts with the lengths of their networks.
func prefixes(v *[]netip.Prefix) func(string) error {
	return func(s string) error {
		*v = nil
		for a := range strings.SplitSeq(s, ",") {
			p, err := netip.ParsePrefix(a)
			if ip := p.Addr(); err != nil || !ip.IsGlobalUnicast() || hostaddr.In(p, ip) != nil || hostaddr.Neighbour(ip) != nil {
				return errors.New("allowed are addresses of a host with the length of its network, such as 192.168.7.254/24")
			}
			*v = append(*v, p)
		}
		return nil
	}
}

func boolean(s string) (bool, error) {
	on, err := strconv.ParseBool(s)
	if err != nil {
		return on, errors.New("allowed are true and false")
	}
	return on, nil
}

// device sets v to the name of a network device.
func device(v *string) func(string) error {
	return func(s string) error {
		if s == "" || len(s) > 15 {
			return errors.New("allowed is the name of a device, at most 15 bytes")
		}
		*v = s
		return nil
	}
}

// portRange sets v to LO-HI.
func portRange(v *underlay.PortRange) func(string) error {
	return func(s string) error {
		a, b, _ := strings.Cut(s, "-")
		lo, err1 := strconv.ParseUint(a, 10, 16)
		hi, err2 := strconv.ParseUint(b, 10, 16)
		if err1 != nil || err2 != nil || lo == 0 || lo > hi {
			return errors.New("allowed are LO-HI with 1 <= LO <= HI <= 65535")
		}
		*v = underlay.PortRange{Lo: uint16(lo), Hi: uint16(hi)}
		return nil
	}
}

// ageing sets v to a duration. A number alone is seconds, as for ip link.
func ageing(v *time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if n, e := strconv.ParseUint(s, 10, 31); e == nil {
			d, err = time.Duration(n)*time.Second, nil
		}
		switch {
		case err == nil && d == 0:
			*v = -1 // never
		case err != nil || d < 0 || (&vswitch.VSIConfig{Ageing: d}).Check() != nil:
			return errors.New("allowed are durations of 1s to 596523h, such as 300s, and 0 for never")
		default:
			*v = d
		}
		return nil
	}
}

// hostAddr parses the address of one host.
func hostAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	a = a.Unmap()
	switch {
	case err != nil || hostaddr.Check(a) != nil:
		return a, fmt.Errorf("%q: allowed are IPv4 and IPv6 addresses of one host", s)
	case a.Is6() && a.IsLinkLocalUnicast() && a.Zone() == "":
		return a, fmt.Errorf("%q: allowed are link-local addresses with a zone, such as fe80::1%%eth0", s)
	}
	return a, nil
}

// groupAddr parses a multicast group.
func groupAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if a = a.Unmap(); err != nil || !a.IsMulticast() || a.Zone() != "" {
		return a, errors.New("allowed are multicast groups, such as 239.1.1.1 and ff05::1; -underlay-dev says on which interface")
	}
	return a, nil
}

func busyPoll(v *time.Duration) func(string) error {
	return func(s string) error {
		d, err := time.ParseDuration(s)
		if err != nil || d < 0 || d > time.Millisecond {
			return errors.New("allowed are durations of 0 to 1ms, such as 50us")
		}
		*v = d
		return nil
	}
}
