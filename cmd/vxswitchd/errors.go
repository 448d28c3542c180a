package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// advise adds advice to an error of the system about a tunnel or device.
func advise(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop the program or vxlan device that uses the port, or choose another \"port\"", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: \"local\" must be an address of this host", err)
	case errors.Is(err, syscall.ENODEV):
		return fmt.Errorf("%w: the device must exist before the node starts", err)
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w: stop the program that uses the device, or choose another name", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root, or with CAP_NET_ADMIN and CAP_NET_RAW", err)
	}
	return err
}
