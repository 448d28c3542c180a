package hostnet

import (
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// batch is how many requests go in one system call: their answers, if it has to refuse all of them, fit in the buffer of the
// socket, of which they take less than 1 KiB each.
const batch = 128

// A sender sends many requests in one system call. The library sends one, and makes a buffer of 64 KiB for its answer.
type sender struct{ socket *nl.NetlinkSocket }

func openSender(ns netns.NsHandle) (s sender, err error) {
	s.socket, err = nl.GetNetlinkSocketAt(ns, netns.None(), unix.NETLINK_ROUTE)
	return s, err
}

// send sends requests. It returns what has become of each: the kernel carries out those behind one that it refuses.
func (s sender) send(requests []*nl.NetlinkRequest) []error {
	errs := make([]error, len(requests))
	for i := 0; i < len(requests); i += batch {
		j := min(i+batch, len(requests))
		if err := s.some(requests[i:j], errs[i:j]); err != nil {
			for k := range errs[i:j] {
				errs[i+k] = err // carried out or not: who looks again finds out
			}
		}
	}
	return errs
}

// some sends requests in one call. Of those before the last, the kernel answers for what it refuses. It answers before the call returns.
func (s sender) some(requests []*nl.NetlinkRequest, errs []error) error {
	var b []byte
	at := map[uint32]int{}
	for i, r := range requests {
		if at[r.Seq] = i; i == len(requests)-1 {
			r.Flags |= unix.NLM_F_ACK
		}
		b = append(b, r.Serialize()...)
	}
	fd := s.socket.GetFd()
	if err := unix.Sendto(fd, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	var answer [4096]byte // one, with the request
	for {
		n, from, err := unix.Recvfrom(fd, answer[:], unix.MSG_DONTWAIT)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		if k, ok := from.(*unix.SockaddrNetlink); !ok || k.Pid != nl.PidKernel {
			continue
		}
		messages, err := syscall.ParseNetlinkMessage(answer[:n])
		if err != nil {
			return err
		}
		for _, a := range messages {
			i, ours := at[a.Header.Seq]
			if !ours || a.Header.Type != unix.NLMSG_ERROR || len(a.Data) < 4 {
				continue // of a call that has failed
			}
			if code := int32(nl.NativeEndian().Uint32(a.Data)); code != 0 {
				errs[i] = syscall.Errno(-code)
			}
			if i == len(requests)-1 {
				return nil
			}
		}
	}
}

// routeRequest is a route as RouteAdd and RouteDel of the library write it.
func (h *Host) routeRequest(kind, flags int, r Route) *nl.NetlinkRequest {
	n := h.message(r)
	m := nl.NewRtMsg()
	m.Family, m.Dst_len, m.Protocol, m.Scope, m.Flags = unix.AF_INET6, uint8(r.Prefix.Bits()), uint8(n.Protocol), uint8(n.Scope), uint32(n.Flags)
	if r.Prefix.Addr().Is4() {
		m.Family = unix.AF_INET
	}
	if m.Table = unix.RT_TABLE_UNSPEC; r.Table < 256 {
		m.Table = uint8(r.Table)
	}
	q := nl.NewNetlinkRequest(kind, flags)
	q.AddData(m)
	for _, a := range []struct {
		kind int
		on   bool
		data []byte
	}{
		{unix.RTA_DST, true, n.Dst.IP},
		{unix.RTA_GATEWAY, n.Gw != nil, n.Gw},
		{unix.RTA_PREFSRC, n.Src != nil, n.Src},
		{unix.RTA_PRIORITY, r.Metric != 0, nl.Uint32Attr(uint32(r.Metric))},
		{unix.RTA_TABLE, m.Table == unix.RT_TABLE_UNSPEC, nl.Uint32Attr(uint32(r.Table))},
		{unix.RTA_OIF, true, nl.Uint32Attr(uint32(n.LinkIndex))},
	} {
		if a.on {
			q.AddData(nl.NewRtAttr(a.kind, a.data))
		}
	}
	return q
}

// neighbourRequest is the next hop of a route as NeighSet and NeighDel of the library write it.
func (h *Host) neighbourRequest(kind, flags int, r Route) *nl.NetlinkRequest {
	family := uint8(unix.AF_INET6)
	if r.Via.Is4() {
		family = unix.AF_INET
	}
	q := nl.NewNetlinkRequest(kind, flags)
	q.AddData(&netlink.Ndmsg{Family: family, Index: uint32(h.index), State: netlink.NUD_PERMANENT})
	q.AddData(nl.NewRtAttr(unix.NDA_DST, r.Via.AsSlice()))
	q.AddData(nl.NewRtAttr(unix.NDA_LLADDR, r.MAC[:]))
	return q
}
