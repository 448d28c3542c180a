package offload

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What the programs send passes the host's IPsec by: where there is a policy for packets that leave, nothing is carried, or it would leave
// in clear text.

var errIPsec = errors.New("ipsec") // the host has IPsec policies

// followPolicies tells of changes of IPsec policies until close.
func (r *routes) followPolicies() {
	for {
		_, _, err := r.policies.Receive()
		if r.closed.Load() {
			return
		}
		r.stir()
		if err != nil {
			time.Sleep(calm)
		}
	}
}

// subscribePolicies returns nil on a kernel without IPsec.
func subscribePolicies() (*nl.NetlinkSocket, error) {
	s, err := nl.Subscribe(unix.NETLINK_XFRM, nl.XFRMNLGRP_POLICY)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return nil, nil
	}
	return s, err
}

// findPolicies reports whether there is a policy for packets that leave.
func (h *home) findPolicies() (bool, error) {
	var list []netlink.XfrmPolicy
	err := h.do(func() (err error) {
		list, err = netlink.XfrmPolicyList(netlink.FAMILY_ALL)
		return err
	})
	if errors.Is(err, os.ErrNoDeadline) {
		err = fmt.Errorf("the poller does not take a socket: %w", unix.ENOMEM)
	}
	for _, p := range list {
		if p.Dir == netlink.XFRM_DIR_OUT {
			return true, nil
		}
	}
	return false, err
}
