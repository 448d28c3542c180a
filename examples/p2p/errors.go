package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// localError says what to do when the underlay cannot be opened.
func localError(o options, err error) error {
	switch {
	case errors.Is(err, syscall.ENODEV) && strings.Contains(err.Error(), "MulticastDevice"):
		return fmt.Errorf("%w: -underlay-dev must be an interface of this host", err)
	case o.underlay.Device != "" && errors.Is(err, syscall.ENODEV):
		return fmt.Errorf("%w: -bind must be an interface of this host", err)
	case o.underlay.Mark != 0 && errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: -mark needs CAP_NET_ADMIN: run as root", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop the program or vxlan device that has the port, or choose another -dstport", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: -local must be an address of this host", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root, or choose a -dstport above 1023", err)
	}
	return err
}

// deviceError says what to do when the device cannot be opened with that MTU.
func deviceError(o options, mtu int, err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root, or first, as root: ip tuntap add %s mode tap user NAME; ip link set %[2]s mtu %d up", err, o.dev, mtu)
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w: stop that program, or choose another -dev", err)
	case errors.Is(err, syscall.EINVAL):
		hint := "choose another -dev, a name of at most 15 bytes"
		if o.queues != 0 {
			hint += ", or leave -queues out"
		}
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}
