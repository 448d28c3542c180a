package kernel

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/vtep"
)

// reservedAttr is IFLA_VXLAN_RESERVED_BITS (Linux 6.14): a header whose bits are dropped.
const reservedAttr = 0x21

// addVXLAN is "ip link add DEV type vxlan", with attributes for its words.
func addVXLAN(h *netns.Host, dev string, data ...[]byte) (err error) {
	body := slices.Concat(make([]byte, unix.SizeofIfInfomsg), attribute(unix.IFLA_IFNAME, []byte(dev+"\x00")),
		attribute(unix.IFLA_LINKINFO, attribute(unix.IFLA_INFO_KIND, []byte("vxlan")), attribute(unix.IFLA_INFO_DATA, data...)))
	m := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	m = binary.NativeEndian.AppendUint16(m, unix.RTM_NEWLINK)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	m = append(append(m, make([]byte, 8)...), body...)
	h.Do(func() { err = exchange(m) })
	return err
}

// exchange sends a message of rtnetlink, and returns the error that answers it. The kernel
// answers before sendto returns.
func exchange(m []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return unix.EPROTO
	}
	if e := -int32(binary.NativeEndian.Uint32(answer[unix.SizeofNlMsghdr:])); e != 0 {
		return syscall.Errno(e)
	}
	return nil
}

// attribute makes an attribute of netlink, of a value or of attributes.
func attribute(kind uint16, value ...[]byte) []byte {
	v := slices.Concat(value...)
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(v)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), v...)
	return append(b, make([]byte, -len(b)&3)...)
}

// attributes are those of the test's vxlan device, with a mask of reserved bits.
func (fam family) attributes(mask uint64) [][]byte {
	local, remote := uint16(unix.IFLA_VXLAN_LOCAL), uint16(unix.IFLA_VXLAN_GROUP)
	if fam.v6 {
		local, remote = unix.IFLA_VXLAN_LOCAL6, unix.IFLA_VXLAN_GROUP6
	}
	return [][]byte{
		attribute(unix.IFLA_VXLAN_ID, binary.NativeEndian.AppendUint32(nil, vni)),
		attribute(unix.IFLA_VXLAN_PORT, binary.BigEndian.AppendUint16(nil, 4789)),
		attribute(local, netip.MustParseAddr(fam.near).AsSlice()),
		attribute(remote, netip.MustParseAddr(fam.far).AsSlice()),
		attribute(reservedAttr, binary.BigEndian.AppendUint64(nil, mask)),
	}
}

// A mask drops packets for its bits and for no others, in both: none of the 39 bits (RFC
// 7348), all of them, and either half.
func TestReceiveReserved(t *testing.T) {
	l := newLedger(t, nil)
	for _, fam := range families {
		for _, mask := range []uint64{0, reserved39, reserved39 & 0xaaaaaaaaaaaaaaaa, reserved39 & 0x5555555555555555} {
			t.Run(fmt.Sprintf("%s/%#016x", fam.name, mask), func(t *testing.T) {
				p := newPair(t, fam, settings{mask: &mask, reserved: vtep.Reserved(mask)})
				in := inner{src: farInner, dst: nearInner, ttl: 33}.frame()
				try := func(name string, bits uint64) {
					t.Helper()
					kernel, ours := p.receive(fam.packet(outerIP{}, withBits(bits, in)))
					got, want := outcome(in, ours), "delivered unchanged"
					l.compare(t, fam, "", name, "outcome", outcome(in, kernel), got)
					if bits&mask != 0 {
						want = "dropped"
					}
					check.True(t, got == want, "%s: %s, want %s", name, got, want)
				}
				for i := range 64 {
					if bit := uint64(1) << i; bit&reserved39 != 0 {
						try(bitName(i), bit)
					}
				}
				try("all of the mask", mask)
				try("all but the mask", reserved39&^mask)
				try("all", reserved39)
			})
		}
	}
}

// reservableDifferences are the bits that one of the two does not have in a mask, for it has
// a use for them, and the other has.
var reservableDifferences = []difference{
	{setting: "GBP", field: "mask", packets: []string{"octet 1 bit 0x80", "octet 1 bit 0x20", "octet 1 bit 0x10", "octet 1 bit 0x04", "octet 1 bit 0x02", "octet 1 bit 0x01"},
		kernel: "refused", ours: "taken", rule: gbpReserved},
	{setting: "GPE", field: "mask", packets: []string{"octet 0 bit 0x02"}, kernel: "taken", ours: "refused", rule: gpeBUM},
}

// Both refuse a mask with a bit that is in use, each bit of the header by itself.
func TestReservable(t *testing.T) {
	l := newLedger(t, reservableDifferences)
	h := netns.New(t).Host("k")
	said := func(err error) string {
		if err != nil {
			return "refused"
		}
		return "taken"
	}
	id := attribute(unix.IFLA_VXLAN_ID, binary.NativeEndian.AppendUint32(nil, vni))
	for _, c := range []struct {
		name string
		typ  encap.Type
		gbp  bool
		args [][]byte
	}{
		{name: "VXLAN", args: [][]byte{id}},
		{name: "GBP", gbp: true, args: [][]byte{id, attribute(unix.IFLA_VXLAN_GBP)}},
		{name: "GPE", typ: encap.TypeGPE, args: [][]byte{attribute(unix.IFLA_VXLAN_COLLECT_METADATA, []byte{1}),
			attribute(unix.IFLA_VXLAN_LEARNING, []byte{0}), attribute(unix.IFLA_VXLAN_GPE)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			try := func(name string, port uint16, mask uint64) error {
				t.Helper()
				// Devices with the same port would be in each other's way.
				err := addVXLAN(h, fmt.Sprint(c.name, port), append(c.args, attribute(unix.IFLA_VXLAN_PORT, binary.BigEndian.AppendUint16(nil, port)),
					attribute(reservedAttr, binary.BigEndian.AppendUint64(nil, mask)))...)
				if err != nil && err != unix.EINVAL {
					t.Fatalf("%s: %v", name, err)
				}
				_, ours := vtep.Reserved(mask).Mask(c.typ, c.gbp)
				l.compare(t, family{}, c.name, name, "mask", said(err), said(ours))
				return err
			}
			if err := try("no bit", 1000, 0); err != nil {
				t.Fatalf("no bit: %v", err)
			}
			for i := range 64 {
				try(bitName(i), uint16(1001+i), 1<<i)
			}
		})
	}
}
