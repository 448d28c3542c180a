package offload

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/fdb"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"github.com/vxswitch/vxswitch/port"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// TestNumberOfAnother: a device with the number of one that has gone gets a program of its own.
func TestNumberOfAnother(t *testing.T) {
	h := rigHost(t)
	r := newRig(t, h)
	table := r.vsi.FDB()
	p := r.hosts(r.dests[0], r.dests[1])
	r.o.ended.Go(r.o.run)
	defer func() { check.OK(t, r.o.Close()) }()
	carried := func(from, dev string, p vswitch.Pair) {
		t.Helper()
		was := check.Must(r.o.Stats())(t).Carried.Frames
		h.Until("a frame is carried from "+from, func() bool {
			r.o.Hint(p)
			h.Inject(dev, numbered(macA, macB, 1))
			return check.Must(r.o.Stats())(t).Carried.Frames > was
		})
	}
	carried("the first", "tap0", p)
	number := r.index[0]
	check.OK(t, r.at[0].Detach())
	h.Do(func() { persistent(t, "tap9", number) })
	d := netns.Open(t, h, func() (*port.Device, error) { return port.OpenTAP("tap9", nil) })
	a := check.Must(r.vsi.Attach(d, 0))(t)
	if got := check.Must(d.Hook())(t).Index; got != int(number) {
		t.Fatalf("the number is %d, not %d", got, number)
	}
	check.OK(t, table.Set(macA, a.Dest(0), fdb.Static))
	carried("the second", "tap9", vswitch.Pair{From: a.Dest(0), Src: macA, Dst: macB})
}

// persistent makes a TAP with a number.
func persistent(t *testing.T, name string, index uint32) {
	t.Helper()
	fd := check.Must(unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0))(t)
	defer unix.Close(fd)
	check.OK(t, unix.IoctlSetPointerInt(fd, unix.TUNSETIFINDEX, int(index)))
	ifr := check.Must(unix.NewIfreq(name))(t)
	ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	check.OK(t, unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr))
	check.OK(t, unix.IoctlSetInt(fd, unix.TUNSETPERSIST, 1))
}
