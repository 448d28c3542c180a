package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
)

// advise adds advice to an error of the system about a tunnel or device.
func advise(err error) error {
	socket := (*net.OpError)(nil)
	switch {
	case errors.As(err, &socket) && errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w: run as root, or with CAP_NET_BIND_SERVICE for a port below 1024", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop the program or vxlan device that uses the port, or choose another \"port\"", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: \"local\" must be an address of this host", err)
	case errors.Is(err, syscall.ENODEV):
		return fmt.Errorf("%w: the device must exist before the node starts", err)
	case errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w: stop the program that uses the device, or choose another name", err)
	case errors.Is(err, os.ErrPermission) && strings.Contains(err.Error(), "CAP_"): // it says which
		return fmt.Errorf("%w: run as root, or with these capabilities", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root, or with CAP_NET_ADMIN and CAP_NET_RAW", err)
	}
	return err
}

// adviseMetrics adds advice to an error of the address of -metrics.
func adviseMetrics(err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w: stop the program that uses the port, or choose another", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w: must be an address of this host", err)
	}
	return advise(err)
}

// adviseSocket adds advice to an error of a directory that the control socket needs.
func adviseSocket(dir string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // the path may be that of a temporary directory
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("directory %s: %w: make it for the user of the node, or choose another path", dir, err)
	}
	return fmt.Errorf("directory %s: %w", dir, err)
}
