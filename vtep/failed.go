package vtep

import (
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// ICMP errors about packets that did not reach a peer of an IP-in-IP tunnel are passed on to the senders inside
// the tunnel (RFC 2003, sections 4 and 5.1). Routers quote too little to tell whose packet it was, so each
// report is kept with the peer, and passed to the sender of the next packet to it.
const (
	failureAge = 30 * time.Second // older reports are discarded
	maxReports = 16               // for one peer
)

// fail records that a packet has not reached a peer. It is called as narrow is.
func (v *VTEP) fail(to frame.Endpoint, quoted []byte) {
	if !v.sends(quoted) {
		return
	}
	h, ok := v.byHost.Load(hostKey(to.Host()))
	if !ok {
		return
	}
	now := time.Now().UnixNano()
	if now-h.failed.Swap(now) > int64(failureAge) {
		h.failures.Store(0) // too old
	}
	if h.failures.Add(1) > maxReports {
		h.failures.Store(maxReports)
	}
}

// clearFailures discards the reports, since the peer has been heard.
func (h *hop) clearFailures() {
	if h.failures.Load() != 0 {
		h.failures.Store(0)
	}
}

// Failed reports whether the sender of a packet to peer should be told that the peer is unreachable. It returns
// true once for each ICMP error of the last 30 s about an earlier packet, unless the peer has been heard since.
// The packet itself should still be sent, so that the peer is found as soon as it is back.
func (v *VTEP) Failed(peer uint16) bool {
	h := v.hops.get(peer)
	if h == nil {
		return false
	}
	n := h.failures.Load()
	if n == 0 {
		return false
	}
	if time.Since(time.Unix(0, h.failed.Load())) > failureAge {
		h.failures.Store(0)
		return false
	}
	return h.failures.CompareAndSwap(n, n-1)
}
