package sys

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Links are the network devices of one network namespace, which it keeps alive: an rtnetlink socket in it. Its
// methods may wait for the kernel's rtnl lock.
type Links struct {
	file *os.File
	conn syscall.RawConn

	mu  sync.Mutex // one question at a time
	seq uint32     // of the last
}

// OpenLinks returns those of the network namespace of the calling thread.
func OpenLinks() (*Links, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	l := &Links{file: os.NewFile(uintptr(fd), "rtnetlink socket")}
	if l.conn, err = l.file.SyscallConn(); err != nil {
		l.file.Close()
		return nil, err
	}
	return l, nil
}

// NewNamespace returns the devices of a new network namespace without a name, which goes with all that is in it
// when l is closed, or the process ends. It needs CAP_SYS_ADMIN.
func NewNamespace() (l *Links, err error) {
	done := make(chan bool)
	onThread(func() {
		defer close(done)
		if err = os.NewSyscallError("unshare", unix.Unshare(unix.CLONE_NEWNET)); err == nil {
			l, err = OpenLinks()
		}
	})
	<-done
	return l, err
}

// Close forgets the devices.
func (l *Links) Close() { l.file.Close() }

// Namespace returns the number of the namespace, as [Namespace] does.
func (l *Links) Namespace() (uint64, error) { return Namespace(l.conn) }

// Do runs f in the namespace, as [InNamespaceOf] does.
func (l *Links) Do(f func() error) error {
	return Control(l.conn, func(fd int) error { return InNamespaceOf(uintptr(fd), f) })
}

// namespace calls f with a descriptor of the namespace. It needs CAP_NET_ADMIN there.
func (l *Links) namespace(f func(ns int) error) error {
	return Control(l.conn, func(fd int) error {
		ns, err := unix.IoctlRetInt(fd, unix.SIOCGSKNS)
		if err != nil {
			return os.NewSyscallError("SIOCGSKNS", err)
		}
		defer unix.Close(ns)
		return f(ns)
	})
}

// LinkInfo describes a device.
type LinkInfo struct {
	Index    int
	Name     string
	Kind     string // of virtual devices, such as "veth"
	PortOf   string // kind of the device that it is a port of, such as "bridge"
	MTU      int
	Ethernet bool // its frames have Ethernet headers, and it is no loopback
	Peer     int  // index of the other end of a veth pair
	PeerNS   int  // where that is, as [Links.ID] numbers namespaces; Here if in the same
	MAC      [6]byte
}

// Numbers that are no number of a namespace.
const (
	Here     = -2 // the own one
	NoNumber = -1 // one that has none, or that is going
)

// ByName returns the device with a name, or ENODEV.
func (l *Links) ByName(name string) (LinkInfo, error) {
	m := newLinkMessage(unix.RTM_GETLINK, 0, 0, 0)
	m.text(unix.IFLA_IFNAME, name)
	return l.get(m)
}

// ByIndex returns the device with an index, in this namespace or in one that has a number here. That needs
// CAP_NET_ADMIN there.
func (l *Links) ByIndex(index, ns int) (LinkInfo, error) {
	m := newLinkMessage(unix.RTM_GETLINK, 0, index, 0)
	if ns >= 0 {
		m.uint32(unix.IFLA_TARGET_NETNSID, uint32(ns))
	}
	return l.get(m)
}

func (l *Links) get(m linkMessage) (i LinkInfo, err error) {
	answer, err := l.ask(m, unix.RTM_NEWLINK)
	if err != nil {
		return i, err
	}
	if len(answer) < attrAt {
		return i, unix.EPROTO
	}
	attrs := answer[attrAt:]
	number := func(typ uint16, none int) int {
		if v := attribute(attrs, typ); len(v) >= 4 {
			return int(int32(binary.NativeEndian.Uint32(v)))
		}
		return none
	}
	info := attribute(attrs, unix.IFLA_LINKINFO)
	i = LinkInfo{
		Index:    int(binary.NativeEndian.Uint32(answer[infoAt+4:])),
		Name:     unix.ByteSliceToString(attribute(attrs, unix.IFLA_IFNAME)),
		Kind:     unix.ByteSliceToString(attribute(info, unix.IFLA_INFO_KIND)),
		PortOf:   unix.ByteSliceToString(attribute(info, unix.IFLA_INFO_SLAVE_KIND)),
		MTU:      number(unix.IFLA_MTU, 0),
		Ethernet: binary.NativeEndian.Uint16(answer[infoAt+2:]) == unix.ARPHRD_ETHER,
		Peer:     number(unix.IFLA_LINK, 0),
		PeerNS:   number(unix.IFLA_LINK_NETNSID, Here),
	}
	copy(i.MAC[:], attribute(attrs, unix.IFLA_ADDRESS))
	return i, nil
}

// ID returns the number that the namespace of other has here, or NoNumber.
func (l *Links) ID(other *Links) (id int, err error) {
	err = other.namespace(func(ns int) error {
		m := linkMessage{make([]byte, unix.SizeofNlMsghdr+4)} // struct rtgenmsg, padded
		m.header(unix.RTM_GETNSID, 0)
		m.uint32(unix.NETNSA_FD, uint32(ns))
		answer, err := l.ask(m, unix.RTM_NEWNSID)
		if err != nil {
			return fmt.Errorf("RTM_GETNSID: %w", err)
		}
		v := attribute(answer[unix.SizeofNlMsghdr+4:], unix.NETNSA_NSID)
		if len(v) < 4 {
			return fmt.Errorf("RTM_GETNSID: %w", unix.EPROTO)
		}
		id = int(int32(binary.NativeEndian.Uint32(v)))
		return nil
	})
	return id, err
}

// A LinkChange says what to set on a device. The zero value changes nothing.
type LinkChange struct {
	MTU int
	MAC [6]byte
	Up  bool

	// NoIPv6 keeps the kernel from giving the device an IPv6 address of its own, and so from sending on it. Set it
	// before the device is up.
	NoIPv6 bool
}

// Change sets c on a device.
func (l *Links) Change(index int, c LinkChange) error {
	flags := uint32(0)
	if c.Up {
		flags = unix.IFF_UP
	}
	m := newLinkMessage(unix.RTM_SETLINK, unix.NLM_F_ACK, index, flags)
	if c.MTU != 0 {
		m.uint32(unix.IFLA_MTU, uint32(c.MTU))
	}
	if c.MAC != [6]byte{} {
		m.bytes(unix.IFLA_ADDRESS, c.MAC[:])
	}
	if c.NoIPv6 {
		m.nest(unix.IFLA_AF_SPEC, func() {
			m.nest(unix.AF_INET6, func() { m.bytes(unix.IFLA_INET6_ADDR_GEN_MODE, []byte{1}) }) // IN6_ADDR_GEN_MODE_NONE
		})
	}
	_, err := l.ask(m, unix.NLMSG_ERROR)
	if c.NoIPv6 && err == unix.EAFNOSUPPORT { // the kernel has no IPv6
		return nil
	}
	return err
}

// Delete deletes a device.
func (l *Links) Delete(index int) error {
	_, err := l.ask(newLinkMessage(unix.RTM_DELLINK, unix.NLM_F_ACK, index, 0), unix.NLMSG_ERROR)
	return err
}

// A VethEnd is what an end of a new veth pair is to be like.
type VethEnd struct {
	In   *Links
	Name string // "%d" is filled in by the kernel
	MTU  int    // 0 = 1500
	MAC  net.HardwareAddr
}

// AddVeth makes a veth pair. Both ends are down.
func AddVeth(a, b VethEnd) error {
	return b.In.namespace(func(ns int) error {
		m := newLinkMessage(unix.RTM_NEWLINK, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL, 0, 0)
		end := func(e VethEnd) {
			m.text(unix.IFLA_IFNAME, e.Name)
			if e.MTU != 0 {
				m.uint32(unix.IFLA_MTU, uint32(e.MTU))
			}
			if len(e.MAC) > 0 {
				m.bytes(unix.IFLA_ADDRESS, e.MAC)
			}
		}
		end(a)
		m.nest(unix.IFLA_LINKINFO, func() {
			m.text(unix.IFLA_INFO_KIND, "veth")
			m.nest(unix.IFLA_INFO_DATA, func() {
				m.nest(vethInfoPeer, func() {
					m.b = append(m.b, make([]byte, unix.SizeofIfInfomsg)...)
					end(b)
					m.uint32(unix.IFLA_NET_NS_FD, uint32(ns))
				})
			})
		})
		_, err := a.In.ask(m, unix.NLMSG_ERROR)
		return err
	})
}

// vethInfoPeer is VETH_INFO_PEER: a struct ifinfomsg and the attributes of the other end.
const vethInfoPeer = 1

// ask sends a message and returns the answer, which must be of this type. NLMSG_ERROR is that all went well.
func (l *Links) ask(m linkMessage, want uint16) (answer []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	err = Control(l.conn, func(fd int) error {
		binary.NativeEndian.PutUint32(m.b, uint32(len(m.b)))
		binary.NativeEndian.PutUint32(m.b[8:], l.seq)
		if err := unix.Sendto(fd, m.b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return err
		}
		for {
			answer = make([]byte, 16<<10) // as of exchange
			n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
			if err != nil {
				return err
			}
			answer = answer[:n]
			if n < unix.SizeofNlMsghdr+4 {
				return unix.EPROTO
			}
			if binary.NativeEndian.Uint32(answer[8:]) == l.seq { // no answer that could not be received before
				break
			}
		}
		typ := binary.NativeEndian.Uint16(answer[4:])
		if typ == unix.NLMSG_ERROR {
			if errno := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); errno != 0 {
				return syscall.Errno(errno)
			}
		}
		if typ != want {
			return unix.EPROTO
		}
		return nil
	})
	return answer, err
}

// A linkMessage is one of rtnetlink under construction.
type linkMessage struct{ b []byte }

// newLinkMessage begins a message about a device.
func newLinkMessage(typ, flags uint16, index int, up uint32) linkMessage {
	m := linkMessage{make([]byte, attrAt)}
	m.header(typ, flags)
	binary.NativeEndian.PutUint32(m.b[infoAt+4:], uint32(index))
	binary.NativeEndian.PutUint32(m.b[infoAt+8:], up)
	binary.NativeEndian.PutUint32(m.b[infoAt+12:], up) // which flags to change
	return m
}

func (m *linkMessage) header(typ, flags uint16) {
	binary.NativeEndian.PutUint16(m.b[4:], typ)
	binary.NativeEndian.PutUint16(m.b[6:], flags|unix.NLM_F_REQUEST)
}

// nest appends an attribute with what f appends.
func (m *linkMessage) nest(typ uint16, f func()) {
	at := len(m.b)
	m.b = binary.NativeEndian.AppendUint16(m.b, 0)
	m.b = binary.NativeEndian.AppendUint16(m.b, typ)
	f()
	binary.NativeEndian.PutUint16(m.b[at:], uint16(len(m.b)-at))
	for len(m.b)%4 != 0 {
		m.b = append(m.b, 0)
	}
}

func (m *linkMessage) bytes(typ uint16, v []byte) { m.nest(typ, func() { m.b = append(m.b, v...) }) }
func (m *linkMessage) text(typ uint16, v string)  { m.bytes(typ, append([]byte(v), 0)) }
func (m *linkMessage) uint32(typ uint16, v uint32) {
	m.bytes(typ, binary.NativeEndian.AppendUint32(nil, v))
}
