package vtep

import (
	"time"

	"github.com/vxswitch/vxswitch/frame"
)

// What the network says of packets that did not reach a peer of an IP-in-IP tunnel is
// passed on to those who send into it (RFC 2003, sections 4 and 5.1). A router quotes too
// little of such a packet to know whose it was, so the state is kept with the peer: each
// report is told once, to the sender of the next packet.
const (
	failureAge = 30 * time.Second // a report that is older is not told
	maxReports = 16               // kept of one peer
)

// fail takes note that a packet has not reached a peer. It is called as narrow is.
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
		h.failures.Store(0) // nobody asked while those were news
	}
	if h.failures.Add(1) > maxReports {
		h.failures.Store(maxReports)
	}
}

// clearFailures forgets the reports: the peer has been heard.
func (h *hop) clearFailures() {
	if h.failures.Load() != 0 {
		h.failures.Store(0)
	}
}

// Failed reports whether the sender of a packet to peer is to be told that it is not reached: once
// for each report of the network in the last 30 s that an earlier packet did not get there, unless the
// peer has been heard since. The packet goes all the same, so that a peer is found again as soon as it is back.
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
