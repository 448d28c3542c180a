package daemon

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/vxswitch/vxswitch/flannel"
	"github.com/vxswitch/vxswitch/flannel/internal/flanneldlab"
	"github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// TestMain is the program if the environment says so: tests start it in namespaces.
func TestMain(m *testing.M) {
	switch os.Getenv("VXFLANNELD_TEST") {
	case "":
	case "leave":
		os.Exit(failAndLeave())
	default:
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		status := Main(ctx, os.Args[1:], os.Environ(), &Program{Stdout: os.Stdout, Stderr: os.Stderr, Cluster: memoryCluster, Offload: noOffload})
		stop()
		os.Exit(status)
	}
	goleak.VerifyTestMain(m)
}

// A program is a running vxflanneld.
type program struct {
	*netns.Proc
	host *netns.Host
	file string
	way  string
	args []string
}

func start(t *testing.T, l *flanneldlab.Lab, i int, args ...string) *program {
	t.Helper()
	p := &program{host: l.Host(i), file: filepath.Join(t.TempDir(), "run", "subnet.env"), args: args}
	p.way = l.Way(p.host)
	p.start(t)
	return p
}

func (p *program) start(t *testing.T) {
	t.Helper()
	p.launch(t)
	p.Want("ready subnet=")
}

// launch starts the program, and does not wait for it.
func (p *program) launch(t *testing.T) {
	t.Helper()
	exe := check.Must(os.Executable())(t)
	p.Proc = p.host.Start("env", append([]string{"VXFLANNELD_TEST=1", exe, "-etcd-endpoints", p.way, "-iface", "eth0", "-subnet-file", p.file, "-v", "1"}, p.args...)...)
}

// read returns the subnet file and its subnet.
func (p *program) read(t *testing.T) (string, flannel.Subnet) {
	t.Helper()
	b := check.Must(os.ReadFile(p.file))(t)
	return string(b), flannel.PreviousSubnet(b)
}

const vxlanJSON = `{"Network": "10.3.0.0/16", "EnableNFTables": true, "Backend": {"Type": "vxlan"}}`

// The program beside real flanneld: pods reach each other, the file is what flanneld writes, it is healthy.
func TestProgram(t *testing.T) {
	l := flanneldlab.New(t, vxlanJSON)
	b := l.Theirs(2)
	p := start(t, l, 11, "-healthz-ip", "127.0.0.1", "-healthz-port", "8090")
	text, subnet := p.read(t)
	if want := fmt.Sprintf("FLANNEL_NETWORK=10.3.0.0/16\nFLANNEL_SUBNET=%v\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n", netip.PrefixFrom(subnet.IPv4.Addr().Next(), 24)); text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	netns.Tool(t, "curl")
	for _, path := range []string{"healthz", "readyz"} {
		if got := p.host.Run("curl", "-sf", "http://127.0.0.1:8090/"+path); !strings.HasPrefix(got, "vxflanneld is r") {
			t.Errorf("%s: %q", path, got)
		}
	}
	pod := l.Pod(p.host, 11, subnet.IPv4)
	reach(t, pod.Host, b.Pod.IPv4.String())
	if ttl := b.Pod.PingTTL(pod.IPv4.String()); ttl != 62 {
		t.Errorf("TTL %d", ttl)
	}
}

// With -ip-masq, what leaves the network has the address of the host, and pods talk to pods as they are. The next start without it ends that.
func TestProgramMasquerade(t *testing.T) {
	l := flanneldlab.New(t, vxlanJSON)
	b := l.Theirs(2)
	p := start(t, l, 11, "-ip-masq")
	text, subnet := p.read(t)
	if !strings.Contains(text, "FLANNEL_IPMASQ=true\n") {
		t.Error(text)
	}
	pod := l.Pod(p.host, 11, subnet.IPv4)
	reach(t, pod.Host, b.Pod.IPv4.String())
	outside := l.Host(50)
	seen := outside.Capture("eth0", "icmp and icmp[0] == 8")
	pod.Ping("192.0.2.50", 1)
	if got := source(seen.Stop()[0].Data); got != "192.0.2.11" {
		t.Errorf("outside, a pod is %s", got)
	}
	seen = b.Pod.Capture("eth0", "icmp and icmp[0] == 8")
	pod.Ping(b.Pod.IPv4.String(), 1)
	if got := source(seen.Stop()[0].Data); got != pod.IPv4.String() {
		t.Errorf("to a pod, a pod is %s", got)
	}

	// The rules stay for the next process, which removes them if it is not to have them.
	p.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	p.host.Run("nft", "list", "table", "inet", table)
	p.args = nil
	p.start(t)
	if out, err := p.host.Try(t.Context(), "nft", "list", "table", "inet", table); err == nil {
		t.Errorf("without -ip-masq there is %s", out)
	}
}

// Rules of a former process go although etcd is away: who has switched masquerading off need not wait for it.
func TestProgramMasqueradeOff(t *testing.T) {
	l := flanneldlab.New(t, vxlanJSON)
	p := start(t, l, 11, "-ip-masq")
	p.host.Run("nft", "list", "table", "inet", table)
	p.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	l.Etcd.Stop()
	p.args = nil
	p.launch(t)
	p.host.Until("the rules are gone", func() bool {
		_, err := p.host.Try(t.Context(), "nft", "list", "table", "inet", table)
		return err != nil
	})
	l.Etcd.Start()
	p.Want("ready subnet=")
}

// source is that of an IPv4 packet in an Ethernet frame.
func source(b []byte) string {
	a, _ := netip.AddrFromSlice(b[26:30])
	return a.String()
}

// The program ends with an error and status 1 when its lease is taken, and when it cannot start.
func TestProgramFails(t *testing.T) {
	l := flanneldlab.New(t, vxlanJSON)
	p := start(t, l, 11)
	_, subnet := p.read(t)
	l.Etcd.Ctl(t, "del", flanneldlab.Prefix+"/subnets/"+subnet.Key())
	p.Want("the lease is lost")
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("%v", err)
	}

	p.start(t) // and one that was suspended while another took its lease leaves that alone
	_, subnet = p.read(t)
	p.Signal(syscall.SIGSTOP)
	key, others := flanneldlab.Prefix+"/subnets/"+subnet.Key(), `{"PublicIP":"192.0.2.77","BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"02:00:00:00:00:77"}}`
	l.Etcd.Ctl(t, "put", key, others)
	p.Signal(syscall.SIGCONT)
	p.Want("somebody else has written")
	if err := p.Wait(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("%v", err)
	}
	if got := strings.TrimSpace(l.Etcd.Ctl(t, "get", "--print-value-only", key)); got != others {
		t.Errorf("the key is now %s", got)
	}
	var out, errs strings.Builder
	for args, want := range map[string]struct {
		status int
		text   string
	}{
		"-iface none0":               {1, `vxflanneld: -iface: "none0": must be an interface with an address; there are `},
		"-iface-regex ^none":         {1, `vxflanneld: -iface-regex: "^none": must be an interface`},
		"-iface-can-reach 127.0.0.1": {1, "vxflanneld: -iface-can-reach: 127.0.0.1: no interface of this host leads there\n"},
		"-mode l3":                   {2, `vxflanneld: invalid value "l3" for flag -mode: pods that are ports of the switch are for vxswitchd`},
		"-datapath kernel":           {2, "vxflanneld: -datapath kernel: this program is built without eBPF\n"},
		"-version":                   {0, "vxflanneld test\n"},
		"-help":                      {0, "Usage: vxflanneld"},
	} {
		out.Reset()
		errs.Reset()
		status := Main(t.Context(), strings.Fields(args), nil, &Program{Version: "vxflanneld test", Stdout: &out, Stderr: &errs})
		if got := out.String() + errs.String(); status != want.status || !strings.HasPrefix(got, want.text) {
			t.Errorf("%s: status %d, %q", args, status, got)
		}
	}
}

func reach(t *testing.T, from *netns.Host, to string) {
	t.Helper()
	from.Until(to+" answers", func() bool {
		_, err := from.Try(t.Context(), "ping", "-n", "-c", "1", "-W", "1", to)
		return err == nil
	})
}

// A node goes from flanneld to vxflanneld and back, as the README says: subnet and pods stay.
func TestMigration(t *testing.T) {
	l := flanneldlab.New(t, vxlanJSON)
	b, x := l.Theirs(2), l.Theirs(3)
	reach(t, b.Pod.Host, x.Pod.IPv4.String())
	subnet, mac := x.Subnets(t)[0], x.Host.MAC("flannel.1")
	p := &program{host: x.Host, file: x.File, way: l.Way(x.Host)}
	x.Stop()

	exe := check.Must(os.Executable())(t)
	out, err := x.Host.Try(t.Context(), "env", "VXFLANNELD_TEST=1", exe, "-etcd-endpoints", p.way, "-iface", "eth0", "-subnet-file", p.file)
	if err == nil || !strings.Contains(out, "ip link delete flannel.1") {
		t.Errorf("beside flanneld's device: %v, %s", err, out)
	}
	x.Host.IP("link", "delete", "flannel.1")
	p.start(t)
	if _, s := p.read(t); s.IPv4 != subnet || x.Host.MAC("flannel.1") != mac {
		t.Errorf("%v and %s, with flanneld %v and %s", s, x.Host.MAC("flannel.1"), subnet, mac)
	}
	reach(t, b.Pod.Host, x.Pod.IPv4.String())
	reach(t, x.Pod.Host, b.Pod.IPv4.String())

	p.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		t.Errorf("%v", err)
	}
	again := flanneldlab.Start(t, x.Host, p.way) // it removes a device that is none of its own
	if s := again.Subnets(t)[0]; s != subnet {
		t.Errorf("flanneld has %v again, was %v", s, subnet)
	}
	reach(t, b.Pod.Host, x.Pod.IPv4.String())
}

// While etcd is stopped, pods are reached; once it is back, a node that comes is followed, and one that has gone is forgotten,
// although etcd forgets the changes between.
func TestOutage(t *testing.T) {
	l := flanneldlab.New(t, vxlanJSON)
	b, c := l.Theirs(2), l.Theirs(3)
	p := start(t, l, 11)
	_, subnet := p.read(t)
	pod := l.Pod(p.host, 11, subnet.IPv4)
	for _, x := range []*flanneldlab.Theirs{b, c} {
		reach(t, pod.Host, x.Pod.IPv4.String())
	}
	l.Etcd.Stop()
	pod.Ping(b.Pod.IPv4.String(), 3)
	b.Pod.Ping(pod.IPv4.String(), 3)

	p.Signal(syscall.SIGSTOP) // it does not hear of what comes now
	l.Etcd.Start()
	d := l.Theirs(4) // before c goes: else it may get the subnet of c
	l.Etcd.Ctl(t, "del", flanneldlab.Prefix+"/subnets/"+flannel.Subnet{IPv4: c.Subnets(t)[0]}.Key())
	l.Etcd.Compact(t)
	p.Signal(syscall.SIGCONT)
	reach(t, pod.Host, d.Pod.IPv4.String())
	reach(t, d.Pod.Host, pod.IPv4.String())
	var got string
	p.host.Until("the route to the node that has gone goes", func() bool {
		got = p.host.Run("ip", "route", "show", "proto", "118")
		return !strings.Contains(got, c.Subnets(t)[0].String())
	})
	if !strings.Contains(got, b.Subnets(t)[0].String()) {
		t.Errorf("routes %s", got)
	}
	pod.Ping(b.Pod.IPv4.String(), 1)
}
