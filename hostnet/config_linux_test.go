package hostnet

import (
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/vxswitch/vxswitch/internal/lab/check"
)

func TestConfig(t *testing.T) {
	_, err := Open(nil)
	check.ErrorHas(t, err, `hostnet: Config.Device: "": must be the name of a device, 1 to 15 bytes`)
	err = (&Config{Device: "a/b", Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}, MTU: 1, Table: 255, Metric: -1, Protocol: 2, Interval: 1}).Check()
	check.ErrorHas(t, err, `hostnet: Config.Device: "a/b"`, "Config.Addresses: 127.0.0.1/8: must be addresses of one host", "Config.MTU: 1: must be 68 to 65535, or 0 to leave it as it is",
		"Config.Table: 255: must be 1 to 2147483647 but not 255 (local)", "Config.Metric: -1", "Config.Protocol: 2: must be 5 to 255", "Config.Interval: 1ns")
	_, err = Open(&Config{Device: "x", Namespace: "vxs-none"})
	check.ErrorHas(t, err, `hostnet: Config.Namespace: "vxs-none": `)
}

func TestRepairString(t *testing.T) {
	check.Equal(t, "text", Repair{Found: true, Up: true, MTU: 1300, Addresses: leg().Addresses, Routes: []Route{to("10.65.2.0/26")}, Removed: 2, Err: errors.Join(net.ErrClosed, net.ErrClosed)}.String(),
		"the device is there again, the device was down, the MTU was 1300, addresses [10.65.1.60/32 fd65:1::60/128], route 10.65.2.0/26, 2 routes removed that were not set here, failed: "+
			"use of closed network connection; use of closed network connection")
	check.Equal(t, "text", Repair{Routes: make([]Route, 3)}.String(), "3 routes")
}
