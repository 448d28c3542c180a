package routed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// hostLocal is the IPAM plugin. It is built when it is first needed, and kept in the user's cache.
const hostLocal = "github.com/containernetworking/plugins/plugins/ipam/host-local@v1.10.0"

var plugins = sync.OnceValues(func() (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "vxswitch", "cni-v1.10.0")
	if _, err := os.Stat(filepath.Join(dir, "host-local")); err == nil {
		return dir, nil
	}
	c := exec.Command("go", "install", hostLocal)
	c.Dir = os.TempDir()
	c.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-trimpath", "GOWORK=off")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", c, err, out)
	}
	return dir, nil
})

// An apiShape makes the vxswitchd behind a socket what a Shape of package routed makes a node. It is for backend vxlan.
type apiShape struct {
	*api.Client
	rows map[control.Row]bool
}

const podsVNI = 100

func (s *apiShape) Open(n *flannel.Network, own *flannel.Own, generation int) (m flannel.MapperConfig, err error) {
	b, base := &n.Backend, own.Subnet.IPv4.Addr()
	gate := netip.PrefixFrom(base.Next(), own.Subnet.IPv4.Bits())
	for _, x := range []struct{ list, name, text string }{
		{"vrfs", "flannel", `{"name": "flannel"}`},
		{"tunnels", "flannel", fmt.Sprintf(`{"name": "flannel", "local": "%v", "port": %d, "peers": "listed-per-vni"}`, own.IPv4.PublicIP, b.Port)},
		{"segments", b.VNI.String(), fmt.Sprintf(`{"vni": %d, "tunnel": "flannel", "noLearning": true, "noFlood": ["broadcast", "multicast", "unknown"],
			"gateway": {"vrf": "flannel", "mac": "%v", "addresses": ["%v/32"], "noAsk": true}}`, b.VNI, own.IPv4.MAC, base)},
		{"segments", fmt.Sprint(podsVNI), fmt.Sprintf(`{"vni": %d, "gateway": {"vrf": "flannel", "mac": "%v", "addresses": ["%v"]}}`, podsVNI, own.IPv4.MAC, gate)},
	} {
		if _, err := s.SetPart(context.Background(), api.Part{List: x.list, Name: x.name}, []byte(x.text), nil); err != nil {
			return m, err
		}
	}
	return flannel.MapperConfig{VRF: "flannel"}, nil
}

func (s *apiShape) Program(_ string, u control.Update) error {
	del := u.Del
	if u.Snapshot {
		for r := range s.rows {
			if !slices.Contains(u.Add, r) {
				del = append(del, r)
			}
		}
	}
	change := func(op string, r control.Row) error {
		p := r.(control.Prefix)
		return s.ChangeRoute(context.Background(), api.RouteChange{Op: op, VRF: p.VRF, Prefix: p.Prefix.String(),
			VNI: &p.Via.VNI, MAC: p.Via.MAC.String(), Dst: p.Via.VTEP.Addr().String()})
	}
	for _, r := range del {
		if err := change(api.Del, r); err != nil {
			return err
		}
		delete(s.rows, r)
	}
	for _, r := range u.Add {
		if s.rows[r] {
			continue
		}
		if err := change(api.Add, r); err != nil {
			return err
		}
		s.rows[r] = true
	}
	return nil
}

func (s *apiShape) Routes(flannel.RouteUpdate) error { return nil }
func (s *apiShape) Links() <-chan []netip.Prefix     { return nil }
func (s *apiShape) Misses() flannel.Misses           { return nil }
func (s *apiShape) Close(bool) error                 { return nil }

// A switchd is a vxswitchd in host 11, beside a flanneld.
type switchd struct {
	*netns.Proc
	l            *flanneldlab.Lab
	host         *netns.Host
	b            *flanneldlab.Theirs
	bin, ipam    string // folders of programs
	file, socket string
}

// newSwitchd starts a vxswitchd with a file, in which SOCKET and FOLDER are paths of its own.
func newSwitchd(t *testing.T, l *flanneldlab.Lab, host *netns.Host, config string) *switchd {
	t.Helper()
	ipam, err := plugins()
	netns.Require(t, err)
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-C", "../../cmd", "-buildvcs=false", "-o", dir, "./vxswitchd", "./vxswitch-cni").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	short := check.Must(os.MkdirTemp("", "routed"))(t) // the paths of sockets are short
	t.Cleanup(func() { os.RemoveAll(short) })
	s := &switchd{l: l, host: host, b: l.Theirs(2), bin: dir, ipam: ipam, file: filepath.Join(dir, "node.json"), socket: filepath.Join(short, "s")}
	check.OK(t, os.WriteFile(s.file, []byte(strings.NewReplacer("SOCKET", s.socket, "FOLDER", dir).Replace(config)), 0o644))
	s.start()
	return s
}

func (s *switchd) start() {
	s.Proc = s.host.Start(filepath.Join(s.bin, "vxswitchd"), "-config", s.file)
	s.Want("ready ")
}

// wantPods attaches a pod of each kind to the segment podsVNI, and fails the test unless it reaches those of flanneld, and is reached.
// Meanwhile may do something with a pod, after which it is reached still.
func (s *switchd) wantPods(t *testing.T, own netip.Prefix, meanwhile func()) {
	for _, kind := range []string{"veth", "tap"} {
		t.Run(kind, func(t *testing.T) {
			pod := &flanneldlab.Pod{Host: s.l.Net.Host(kind)}
			conf := filepath.Join(s.bin, kind+".conf")
			text := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "flannel", "type": "vxswitch-cni", "vni": %d, "port": %q, "mtu": 1450, "socket": %q,
				"ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "%v"}]], "routes": [{"dst": "0.0.0.0/0"}]}}`, podsVNI, kind, s.socket, s.bin+"/addresses", own)
			check.OK(t, os.WriteFile(conf, []byte(text), 0o644))
			cni := func(command string) string {
				t.Helper()
				return s.host.Run("env", "CNI_COMMAND="+command, "CNI_CONTAINERID="+kind, "CNI_IFNAME=eth0", "CNI_NETNS="+netns.Folder+"/"+pod.NS, "CNI_PATH="+s.bin+":"+s.ipam,
					"sh", "-c", filepath.Join(s.bin, "vxswitch-cni")+" <"+conf)
			}
			var result struct {
				IPs []struct{ Address netip.Prefix }
			}
			if out := cni("ADD"); json.Unmarshal([]byte(out), &result) != nil || len(result.IPs) != 1 {
				t.Fatalf("%s", out)
			}
			if pod.IPv4 = result.IPs[0].Address.Addr(); !own.Contains(pod.IPv4) {
				t.Fatalf("%v is not in %v", pod.IPv4, own)
			}
			wantWay(t, pod, s.b.Pod, 62)
			wantStream(t, pod, s.b.Pod)
			s.b.Host.Ping(pod.IPv4.String(), 1)
			if strings.Contains(s.b.Host.IP("-o", "link"), "flannel.1") { // with host-gw there is none
				pod.Ping(s.b.Subnets(t)[0].Addr().String(), 1)
			}
			if meanwhile != nil {
				meanwhile()
				reach(t, pod.Host, s.b.Pod.IPv4.String())
				wantWay(t, pod, s.b.Pod, 62)
			}
			cni("DEL")
			if out := pod.IP("-o", "link"); strings.Contains(out, "eth0") {
				t.Errorf("left: %s", out)
			}
		})
	}
}

// A vxswitchd, whose lease a plane keeps over its control socket, beside a real flanneld: pods that vxswitch-cni has
// attached reach pods and nodes of flanneld, and are reached.
func TestPlugin(t *testing.T) {
	l := flanneldlab.New(t, fmt.Sprintf(nftJSON, ""))
	s := newSwitchd(t, l, l.Host(11), `{"control": {"socket": "SOCKET"}}`)
	plane, err := flannel.NewPlane(&flannel.PlaneConfig{Store: &flannel.Registry{KV: inHost(t, l, s.host).kv()}, PublicIP: netip.MustParseAddr("192.0.2.11"),
		Shape: &apiShape{Client: api.NewClient(s.socket), rows: map[control.Row]bool{}}})
	check.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- plane.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	select {
	case <-plane.Ready():
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	case <-time.After(20 * time.Second):
		t.Fatal("not ready")
	}
	s.wantPods(t, plane.Status().Own.Subnet.IPv4, nil)
}

// A vxswitchd with the section flannel, beside a real flanneld: the same, also after it was killed and started again.
func TestPluginSection(t *testing.T) {
	l := flanneldlab.New(t, fmt.Sprintf(nftJSON, ""))
	way := l.WayFrom(l.Host(9), "192.0.2.9")
	s := newSwitchd(t, l, l.Host(11), fmt.Sprintf(`{
		"segments": [{"vni": %d}],
		"flannel": {"pods": %[1]d, "etcdEndpoints": [%q], "iface": ["eth0"], "subnetFile": "FOLDER/subnet.env"},
		"control": {"socket": "SOCKET"}
	}`, podsVNI, way))
	subnet := func() (own netip.Prefix) {
		t.Helper()
		until(t, "the lease", func() bool {
			f, err := api.NewClient(s.socket).Flannel(t.Context())
			if err != nil || f.State != "ready" {
				return false
			}
			own = netip.MustParsePrefix(f.Lease.Subnet)
			return true
		})
		return own
	}
	own := subnet()
	s.wantPods(t, own, func() {
		s.Kill()
		s.start()
		if got := subnet(); got != own {
			t.Errorf("%v, before %v", got, own)
		}
	})
}

// With DirectRouting, or host-gw, the segment for nodes on the link has the PublicIP, and the host another address.
func TestPluginSectionDirect(t *testing.T) {
	for _, backend := range []string{`{"Type": "vxlan", "DirectRouting": true}`, `{"Type": "host-gw"}`} {
		t.Run(backend, func(t *testing.T) {
			l := flanneldlab.New(t, `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": `+backend+`}`)
			way, h := l.WayFrom(l.Host(9), "192.0.2.9"), l.Bare(11)
			h.Addr("eth0", "192.0.2.111/24")
			s := newSwitchd(t, l, h, fmt.Sprintf(`{
				"ports": [{"name": "eth0", "type": "packet"}],
				"segments": [{"vni": %d}, {"vni": 7, "members": [{"port": "eth0"}],
					"gateway": {"vrf": "flannel", "mac": "02:00:00:00:07:0b", "addresses": ["192.0.2.11/24"]}}],
				"vrfs": [{"name": "flannel"}],
				"flannel": {"pods": %[1]d, "direct": 7, "publicIP": "192.0.2.11", "etcdEndpoints": [%q], "iface": ["eth0"], "subnetFile": "FOLDER/subnet.env"},
				"control": {"socket": "SOCKET"}
			}`, podsVNI, way))
			var own netip.Prefix
			until(t, "the lease", func() bool {
				f, err := api.NewClient(s.socket).Flannel(t.Context())
				if err != nil || f.State != "ready" {
					return false
				}
				own = netip.MustParsePrefix(f.Lease.Subnet)
				return true
			})
			tunnel := h.Capture("eth0", "udp port 8472")
			time.Sleep(6 * time.Second) // longer than it takes to look at the addresses of the host
			s.wantPods(t, own, nil)
			if got := tunnel.Stop(); len(got) > 0 {
				t.Errorf("%d packets in the tunnel", len(got))
			}
		})
	}
}
