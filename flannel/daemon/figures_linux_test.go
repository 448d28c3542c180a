package daemon

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/etcd"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
	"net/netip"
)

// What the program takes beside flanneld, in one run: with VXFLANNELD_FIGURES=1 in the environment. It says so in the log (-v).
//
//	start     from the start of the process, with N leases in etcd, to the subnet file, and to a route for each; resident memory then
//	follow    from the call that writes a lease to the first packet that leaves for its node; the call takes a millisecond or two itself
func TestFigures(t *testing.T) {
	if os.Getenv("VXFLANNELD_FIGURES") == "" {
		t.Skip("VXFLANNELD_FIGURES=1 is not in the environment")
	}
	for _, n := range []int{1000, 5000} {
		for _, who := range []string{"flanneld", "vxflanneld"} {
			t.Run(fmt.Sprintf("start/%d/%s", n, who), func(t *testing.T) { startWith(t, who, n) })
		}
	}
	for _, who := range []string{"flanneld", "vxflanneld"} {
		t.Run("follow/"+who, func(t *testing.T) { followOne(t, who) })
	}
}

// other is the lease of node i.
func other(i int) (key string, value []byte) {
	a := flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: netip.AddrFrom4([4]byte{172, 16, byte(i >> 8), byte(i)}), VNI: 1, MAC: frame.MACFrom(0x020000000000 | uint64(i))}}
	return fmt.Sprintf("10.%d.%d.0-24", 100+i>>8, i&255), a.Value()
}

func figuresLab(t *testing.T) (*flanneldlab.Lab, *etcd.Store) {
	l := flanneldlab.New(t, `{"Network": "10.0.0.0/8", "SubnetMin": "10.1.0.0", "SubnetMax": "10.50.0.0", "EnableNFTables": true, "Backend": {"Type": "vxlan"}}`)
	s, err := etcd.New(&etcd.Config{Endpoints: []string{l.Etcd.URL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return l, s
}

// launch starts the program or flanneld, and returns its process once it has written the file.
func launch(t *testing.T, l *flanneldlab.Lab, h *netns.Host, who string) *netns.Proc {
	way, file := l.Way(h), filepath.Join(t.TempDir(), "subnet.env")
	if who == "flanneld" {
		return flanneldlab.Start(t, h, way).Proc
	}
	p := &program{host: h, file: file, way: way}
	p.start(t)
	return p.Proc
}

func startWith(t *testing.T, who string, n int) {
	l, s := figuresLab(t)
	for i := range n {
		key, value := other(i)
		if _, err := s.Create(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	h := l.Host(11)
	begun := time.Now()
	p := launch(t, l, h, who)
	file := time.Since(begun)
	for strings.Count(h.Run("ip", "route", "show", "dev", "flannel.1"), "onlink") < n {
		time.Sleep(20 * time.Millisecond)
	}
	all := time.Since(begun)
	t.Logf("%s, %d leases: file %v, all routes %v, %s kB", who, n, file.Round(time.Millisecond), all.Round(time.Millisecond), resident(t, h, p))
}

// resident returns the memory of a process, or of its child: "ip netns exec" may be in between.
func resident(t *testing.T, h *netns.Host, p *netns.Proc) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID()) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSuffix(strings.TrimSpace(rest), " kB")
		}
	}
	return "?"
}

func followOne(t *testing.T, who string) {
	l, s := figuresLab(t)
	h, far := l.Host(11), l.Host(50)
	launch(t, l, h, who)
	in := netns.Open(t, far, func() (*net.UDPConn, error) {
		return net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(192, 0, 2, 50), Port: 8472})
	})
	out := netns.Open(t, h, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", &net.UDPAddr{}) })
	key := "10.200.0.0-24"
	a := flannel.Attrs{Type: "vxlan", IPv4: flannel.End{PublicIP: netip.MustParseAddr("192.0.2.50"), VNI: 1, MAC: frame.MAC{2, 0, 0, 0, 0, 50}}}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.NewTicker(200 * time.Microsecond); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				out.WriteToUDP([]byte("is it there"), &net.UDPAddr{IP: net.IPv4(10, 200, 0, 7), Port: 9})
			}
		}
	}()
	var took []time.Duration
	b := make([]byte, 2000)
	for range 40 {
		begun := time.Now()
		r, err := s.Create(t.Context(), key, a.Value())
		if err != nil {
			t.Fatal(err)
		}
		in.SetReadDeadline(time.Now().Add(20 * time.Second))
		if _, err := in.Read(b); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(begun))
		if err := s.Delete(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		for quiet := false; !quiet; {
			in.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			_, err := in.Read(b)
			quiet = err != nil
		}
	}
	close(stop)
	<-ended
	slices.Sort(took)
	t.Logf("%s: median %v, p90 %v of %d", who, took[20].Round(10*time.Microsecond), took[36].Round(10*time.Microsecond), len(took))
}
