package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"

	wants "github.com/vxswitch/vxswitch/internal/lab/check"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

var must = wants.OK

var folder string // for programs and sockets, whose paths must be short

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if folder, err = os.MkdirTemp("", "cni"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(folder)
		return m.Run()
	}())
}

// pluginsVersion is that of the reference plugins: the first with GC in host-local. Debian 12 has 1.1.1, which knows neither
// version 1.1 of the specification nor GC.
const pluginsVersion = "v1.10.0"

// programs builds the plugin, the node and host-local into one folder, once.
var programs = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(folder, "bin")
	for path, what := range map[string]string{"vxswitch-cni": ".", "vxswitchd": "../vxswitchd", "vxsctl": "../vxsctl"} {
		if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(bin, path), what).CombinedOutput(); err != nil {
			return "", fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	return bin, reference(bin, "github.com/containernetworking/plugins/plugins/ipam/host-local", pluginsVersion)
})

// reference puts a program of another module into a folder. It is built when it is first needed, and kept in the user's cache.
func reference(bin, pkg, version string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, "vxswitch", "cni-"+version)
	made := filepath.Join(dir, filepath.Base(pkg))
	if _, err := os.Stat(made); err != nil {
		c := exec.Command("go", "install", pkg+"@"+version)
		c.Dir = folder
		c.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-trimpath", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("go install %s@%s: %w\n%s", pkg, version, err, out)
		}
	}
	return os.Symlink(made, filepath.Join(bin, filepath.Base(pkg)))
}

// A machine is a host with a node and a container runtime:
//
//	pod eth0 --- node --- eth0 --- the other machine
type machine struct {
	*netns.Host
	t            *testing.T
	bin          string
	file, socket string
	proc         *netns.Proc
	data         string // of host-local
	runtime      *libcni.CNIConfig
}

func newMachine(t *testing.T, n *netns.Net, name, config string) *machine {
	t.Helper()
	bin, err := programs()
	netns.Require(t, err)
	dir, err := os.MkdirTemp(folder, name)
	must(t, err)
	m := &machine{
		Host: n.Host(name), t: t, bin: bin, file: filepath.Join(dir, "node.json"), socket: filepath.Join(dir, "s"), data: filepath.Join(dir, "ipam"),
		runtime: libcni.NewCNIConfigWithCacheDir([]string{bin}, filepath.Join(dir, "cache"), &invoke.DefaultExec{RawExec: &invoke.RawExec{Stderr: os.Stderr}}),
	}
	must(t, os.WriteFile(m.file, []byte(strings.ReplaceAll(config, "SOCKET", m.socket)), 0o644))
	return m
}

// run starts the node and waits until it is ready.
func (m *machine) run() {
	m.t.Helper()
	m.proc = m.Start(filepath.Join(m.bin, "vxswitchd"), "-config", m.file)
	m.proc.Want("ready ")
}

// ctl runs vxsctl.
func (m *machine) ctl(words string) string {
	m.t.Helper()
	out, err := exec.CommandContext(m.t.Context(), filepath.Join(m.bin, "vxsctl"), append([]string{"-socket", m.socket}, strings.Fields(words)...)...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("vxsctl %s: %v\n%s", words, err, out)
	}
	return string(out)
}

// network returns a network of one plugin, with more of its keys.
func (m *machine) network(keys string) *libcni.NetworkConfigList {
	m.t.Helper()
	return m.networkAs("pods", keys)
}

func (m *machine) networkAs(name, keys string) *libcni.NetworkConfigList {
	m.t.Helper()
	if !strings.Contains(keys, `"vni"`) {
		keys += `, "vni": 100`
	}
	if !strings.Contains(keys, `"ipam"`) {
		keys += fmt.Sprintf(`, "ipam": {"type": "host-local", "dataDir": %q, "ranges": [[{"subnet": "10.1.0.0/16", "rangeStart": "10.1.%s.1", "rangeEnd": "10.1.%[2]s.200", "gateway": "10.1.255.254"}]],
			"routes": [{"dst": "0.0.0.0/0"}]}`, m.data, map[string]string{"a": "1", "b": "2"}[m.Name])
	}
	l, err := libcni.NetworkConfFromBytes(fmt.Appendf(nil, `{"cniVersion": "1.1.0", "name": %q, "plugins": [{"type": "vxswitch-cni", "socket": %q%s}]}`,
		name, m.socket, keys))
	must(m.t, err)
	return l
}

// at returns what a runtime says of a pod's interface. The container has the name of the pod.
func at(pod *netns.Host, ifname string) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: pod.Name, NetNS: netns.Folder + "/" + pod.NS, IfName: ifname}
}

// in runs f as the runtime of a machine.
func in[T any](m *machine, f func(context.Context) (T, error)) (x T, err error) {
	m.t.Helper()
	m.Do(func() { x, err = f(m.t.Context()) })
	return x, err
}

// add attaches a pod, which must not fail.
func (m *machine) add(l *libcni.NetworkConfigList, rt *libcni.RuntimeConf) *current.Result {
	m.t.Helper()
	r, err := m.tryAdd(l, rt)
	must(m.t, err)
	x, err := current.NewResultFromResult(r)
	must(m.t, err)
	return x
}

func (m *machine) tryAdd(l *libcni.NetworkConfigList, rt *libcni.RuntimeConf) (types.Result, error) {
	m.t.Helper()
	return in(m, func(ctx context.Context) (types.Result, error) { return m.runtime.AddNetworkList(ctx, l, rt) })
}

func (m *machine) del(l *libcni.NetworkConfigList, rt *libcni.RuntimeConf) error {
	m.t.Helper()
	_, err := in(m, func(ctx context.Context) (int, error) { return 0, m.runtime.DelNetworkList(ctx, l, rt) })
	return err
}

func (m *machine) check(l *libcni.NetworkConfigList, rt *libcni.RuntimeConf) error {
	m.t.Helper()
	_, err := in(m, func(ctx context.Context) (int, error) { return 0, m.runtime.CheckNetworkList(ctx, l, rt) })
	return err
}

func (m *machine) status(l *libcni.NetworkConfigList) error {
	m.t.Helper()
	_, err := in(m, func(ctx context.Context) (int, error) { return 0, m.runtime.GetStatusNetworkList(ctx, l) })
	return err
}

func (m *machine) gc(l *libcni.NetworkConfigList, valid ...*libcni.RuntimeConf) error {
	m.t.Helper()
	args := &libcni.GCArgs{}
	for _, rt := range valid {
		args.ValidAttachments = append(args.ValidAttachments, types.GCAttachment{ContainerID: rt.ContainerID, IfName: rt.IfName})
	}
	_, err := in(m, func(ctx context.Context) (int, error) { return 0, m.runtime.GCNetworkList(ctx, l, args) })
	return err
}

// left returns what is there of pods: devices of the host, ports of the node, saved ports and addresses in use.
func (m *machine) left() (list []string) {
	m.t.Helper()
	for _, line := range strings.Split(m.IP("-o", "link"), "\n") {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], "vx") && !strings.HasPrefix(f[1], "vxt") && !strings.HasPrefix(f[1], "vxh") {
			list = append(list, "device "+f[1])
		}
	}
	if m.proc != nil {
		for _, line := range strings.Split(m.ctl("port"), "\n") {
			if f := strings.Fields(line); len(f) > 1 && (f[1] == "interface" || f[1] == "tap") {
				list = append(list, "port "+f[0])
			}
		}
	}
	if text, err := os.ReadFile(m.socket + ".ports"); err == nil {
		list = append(list, "saved "+string(text))
	}
	files, _ := filepath.Glob(filepath.Join(m.data, "*", "10.*"))
	for _, f := range files {
		list = append(list, "address "+filepath.Base(f))
	}
	return list
}

// wantNothing fails the test if something is there of pods.
func (m *machine) wantNothing(when string) {
	m.t.Helper()
	if list := m.left(); len(list) > 0 {
		m.t.Errorf("%s: there is %s", when, strings.Join(list, ", "))
	}
}

// wantCode fails the test unless err is one of the plugin with a code and a text.
func wantCode(t *testing.T, err error, code uint, text string) {
	t.Helper()
	e, ok := errors.AsType[*types.Error](err)
	if !ok || e.Code != code || !strings.Contains(e.Msg+e.Details, text) {
		t.Errorf("%+v, want code %d and %q", err, code, text)
	}
}

const oneConfig = `{
  "tunnels": [{"name": "vx", "local": "LOCAL"}, {"name": "ip", "type": "ipip", "local": "LOCAL"}],
  "segments": [
    {"vni": 100, "tunnel": "vx", "flood": ["REMOTE"]}, {"vni": 101, "tunnel": "vx", "flood": ["REMOTE"]}, {"vni": 102},
    {"vni": 103, "tunnel": "ip", "gateway": {"vrf": "red", "addresses": ["10.9.0.1/32"]}}
  ],
  "vrfs": [{"name": "red"}],
  "control": {"socket": "SOCKET"}
}`

// newPair starts two machines.
func newPair(t *testing.T) (n *netns.Net, a, b *machine) {
	t.Helper()
	n = netns.New(t)
	a = newMachine(t, n, "a", strings.NewReplacer("LOCAL", "10.0.0.1", "REMOTE", "10.0.0.2").Replace(oneConfig))
	b = newMachine(t, n, "b", strings.NewReplacer("LOCAL", "10.0.0.2", "REMOTE", "10.0.0.1").Replace(oneConfig))
	n.Link(a.Host, "10.0.0.1/24", b.Host, "10.0.0.2/24")
	a.run()
	b.run()
	return n, a, b
}
