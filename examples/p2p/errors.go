package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"github.com/vxswitch/vxswitch/node"
)

// cause returns err without the name of the tunnel or port.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// localError adds advice to an error of the underlay.
func localError(o options, err error) error {
	switch {
	case errors.Is(err, syscall.ENODEV):
		name, dev := "underlay-dev", o.node.Tunnels[0].Device
		if _, missing := net.InterfaceByName(dev); dev != "" && missing != nil {
			name = "bind"
		}
		return fmt.Errorf("%w: -%s must be an interface of this host", err, name)
	case o.node.Tunnels[0].Mark != 0 && errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: -mark requires CAP_NET_ADMIN: run as root", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop the program or vxlan device that uses the port, or choose another -dstport", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: -local must be an address of this host", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root, or choose a -dstport above 1023", err)
	}
	return err
}

// datapathError adds advice to an error of -datapath kernel.
func datapathError(err error) error {
	return fmt.Errorf("-datapath kernel: %w: run as root on Linux 6.6 or later, or leave it to user space with -datapath auto", err)
}

// deviceError adds advice to an error of the device.
func deviceError(o options, err error) error {
	switch veth := o.node.Ports[0].Type == node.PortVeth; {
	case veth && errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root, or leave -kind out", err)
	case veth && errors.Is(err, errors.ErrUnsupported):
		return fmt.Errorf("%w: leave -kind out", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root, or first, as root: ip tuntap add %s mode tap user NAME; ip link set %[2]s mtu %d up", err, o.node.Ports[0].Name, o.node.Ports[0].MTU)
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w: stop that program, or choose another -dev", err)
	case errors.Is(err, syscall.EINVAL):
		hint := "choose another -dev"
		if o.queues {
			hint += ", or leave -queues out"
		}
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}
