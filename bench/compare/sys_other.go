//go:build !linux

package main

import (
	"errors"
	"net/netip"
	"os"
	"time"
)

// Nothing is started on other systems: see able.

func listen(string) (*os.File, netip.AddrPort, error) {
	return nil, netip.AddrPort{}, errors.ErrUnsupported
}

func sink(*os.File, int, int, time.Duration) (received, error) {
	return received{}, errors.ErrUnsupported
}

func blast(string, int, time.Duration, float64) (sent, error) { return sent{}, errors.ErrUnsupported }

func talk(string, talker, time.Duration, float64) (sent, error) { return sent{}, errors.ErrUnsupported }

func hear(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func poke(int) error { return errors.ErrUnsupported }
