// Package arrows holds the structure of the project as a test: which package may
// import which.
package arrows

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/vxswitch/vxswitch"

// allowed is every arrow between our packages, tests left out. A new arrow is a
// decision: it is made here.
var allowed = map[string][]string{
	"frame":   {"internal/wire"},
	"setting": {},

	"setting/conf": {"setting", "frame"},

	"bfd":       {"setting", "frame", "internal/sys"},
	"bfd/vxlan": {"bfd", "frame", "internal/wire"},

	"encap":  {"setting", "frame", "internal/mix"},
	"arp":    {"setting", "frame", "internal/follow", "internal/hostaddr", "internal/mix", "internal/neighbour", "internal/pending", "internal/shares", "internal/wire"},
	"fdb":    {"frame", "internal/mix"},
	"l3":     {"setting", "frame", "arp", "internal/absent", "internal/follow", "internal/hostaddr", "internal/icmperr", "internal/mix", "internal/neighbour", "internal/perworker", "internal/shares", "internal/wire"},
	"policy": {"setting", "frame", "encap", "internal/follow", "internal/mix", "internal/perworker", "internal/wire"},
	"snoop":  {"setting", "frame", "internal/index", "internal/mix", "internal/shares", "internal/wire"},
	"switch": {"setting", "frame", "fdb", "internal/absent", "internal/gso", "internal/hostaddr", "internal/icmperr", "internal/index", "internal/mix", "internal/pending", "internal/perworker", "internal/ring"},
	"vtep":   {"setting", "frame", "encap", "internal/absent", "internal/follow", "internal/hostaddr", "internal/gso", "internal/index", "internal/mix", "internal/perworker", "internal/wire"},

	"control":             {"frame", "arp", "fdb", "l3", "switch", "vtep", "internal/hostaddr"},
	"control/controltest": {"control", "frame"},
	"node":                {"bfd", "bfd/vxlan", "capture", "setting", "setting/conf", "internal/absent", "control", "arp", "encap", "fdb", "frame", "l3", "policy", "port", "port/water", "snoop", "switch", "underlay", "underlay/afpacket", "vtep", "internal/hostaddr", "internal/sys"},

	"underlay":          {"setting", "frame", "internal/datagrams", "internal/sys"},
	"underlay/afpacket": {"setting", "frame", "underlay", "internal/datagrams", "internal/filter", "internal/gso", "internal/hostaddr", "internal/index", "internal/mix", "internal/neighbour", "internal/sys", "internal/wire"},
	"underlay/memory":   {"setting", "frame", "underlay", "internal/datagrams", "internal/delay", "internal/ring"},
	"port":              {"setting", "frame", "internal/absent", "internal/filter", "internal/gso", "internal/ring", "internal/sys", "internal/wire", "internal/wrap"},
	"capture":           {"setting", "frame", "switch", "vtep", "internal/absent", "internal/wire", "internal/wrap"},

	"port/porttest": {"setting", "frame", "port", "internal/delay", "internal/wrap"},
	"port/water":    {"port"},

	"metrics": {"arp", "capture", "frame", "l3", "policy", "port", "snoop", "switch", "underlay", "vtep", "internal/absent"}, // a module of its own
	"hostnet": {"control", "frame", "internal/sys", "setting"},                                                               // likewise
	"api":     {"bfd", "frame", "switch"},

	"discovery": {"arp", "control", "discovery/internal/endp", "discovery/internal/hello", "discovery/internal/seal", "discovery/internal/state", "discovery/internal/wire", "fdb", "frame", "internal/batch", "internal/secret", "l3", "setting", "switch"}, "discovery/etcd": {"discovery", "discovery/internal/endp", "flannel/etcd", "setting"}, "discovery/internal/endp": {}, "discovery/internal/hello": {}, "discovery/internal/seal": {}, "discovery/internal/state": {"frame"}, "discovery/internal/wire": {"discovery/internal/endp", "discovery/internal/hello", "discovery/internal/state", "frame"}, // a module of its own
	"flannel": {"control", "frame", "internal/hostaddr", "internal/jsontype", "setting"}, "flannel/etcd": {"flannel", "internal/secret", "setting"}, "flannel/storetest": {"flannel", "frame"}, "flannel/kube": {"flannel", "flannel/kube/apiserver", "internal/hostaddr", "setting"}, "flannel/kube/apiserver": {}, "flannel/daemon": {"flannel", "flannel/etcd", "flannel/hosted", "flannel/routed", "frame", "internal/hostaddr", "node", "setting", "setting/conf", "switch"}, "flannel/internal/onnode": {"control", "flannel", "frame", "node", "switch", "vtep"}, "flannel/routed": {"arp", "control", "encap", "flannel", "flannel/internal/onnode", "frame", "node", "setting", "switch"}, "flannel/internal/flanneldlab": {"internal/lab/etcdlab", "internal/lab/netns"}, "flannel/bench": {"bench/tool"}, "flannel/hosted": {"arp", "control", "encap", "flannel", "flannel/internal/onnode", "frame", "hostnet", "node", "port", "setting", "switch"}, // a module of its own

	"bgp": {"bfd", "bgp/internal/engine", "bgp/internal/gobgp", "control", "frame", "internal/batch", "internal/hostaddr", "l3", "internal/secret", "setting", "switch"}, "bgp/internal/engine": {}, "bgp/internal/gobgp": {"bgp/internal/engine"}, // a module of its own

	"calico": {"bfd", "bgp", "calico/internal/model", "calico/internal/resource", "calico/internal/rules", "control", "flannel/etcd", "frame", "internal/batch", "internal/hostaddr", "policy", "internal/secret", "setting", "vtep"}, "calico/internal/model": {"bgp", "calico/internal/resource", "control", "frame", "internal/hostaddr", "setting"}, "calico/internal/resource": {"bgp", "calico/internal/selector", "frame", "internal/hostaddr", "internal/jsontype", "policy"}, "calico/internal/rules": {"calico/internal/model", "calico/internal/resource", "calico/internal/selector", "frame", "policy"}, "calico/internal/selector": {}, "calico/kube": {"calico", "calico/internal/resource", "flannel/kube/apiserver", "setting"}, // modules of their own

	"bgp/bench":  {},
	"evpn/bench": {},
	"evpn":       {"arp", "bfd", "control", "encap", "evpn/internal/bgp", "evpn/internal/election", "evpn/internal/engine", "evpn/internal/mobility", "evpn/internal/route", "evpn/internal/table", "fdb", "frame", "internal/batch", "l3", "internal/secret", "setting", "switch", "vtep"}, "evpn/internal/table": {"control", "evpn/internal/election", "evpn/internal/mobility", "evpn/internal/route", "frame", "internal/batch"}, "evpn/internal/election": {"evpn/internal/route", "frame"}, "evpn/internal/engine/memory": {"evpn/internal/engine", "evpn/internal/route"}, "evpn/internal/mobility": {"evpn/internal/route"}, "evpn/internal/route": {"frame"}, "evpn/internal/engine": {"evpn/internal/route"}, "evpn/internal/bgp": {"evpn/internal/engine", "evpn/internal/route", "evpn/internal/unnumbered", "setting"}, "evpn/internal/unnumbered": {}, // a module of its own

	"ovsdb": {"arp", "bfd", "bfd/vxlan", "control", "frame", "internal/neighbour", "l3", "node", "ovsdb/internal/rpc", "ovsdb/internal/server", "ovsdb/internal/store", "ovsdb/internal/table", "setting", "snoop", "switch"}, "ovsdb/internal/server": {"ovsdb/internal/store"}, "ovsdb/internal/store": {}, "ovsdb/internal/ovslab": {"internal/lab/netns"}, "ovsdb/internal/rpc": {}, "ovsdb/internal/table": {"control", "frame", "internal/hostaddr", "policy", "vtep"}, // a module of its own

	"offload":                   {"encap", "frame", "internal/mix", "internal/shares", "internal/sys", "offload/internal/datapath", "port", "switch", "underlay", "vtep"}, // a module of its own
	"offload/internal/datapath": {"encap", "frame"},

	"cmd/vxswitchd": {"api", "cmd/internal/file", "cmd/internal/pcapfilter", "cmd/internal/version", "bgp", "calico", "discovery", "discovery/etcd", "evpn", "flannel", "flannel/daemon", "flannel/etcd", "flannel/routed", "arp", "bfd", "bfd/vxlan", "capture", "control", "encap", "fdb", "frame", "internal/hostaddr", "l3", "metrics", "node", "offload", "ovsdb", "policy", "setting", "setting/conf", "snoop", "switch", "vtep"}, // a module of its own
	"cmd/vxsctl":    {"api", "cmd/internal/version", "frame", "setting"}, "cmd/vxflanneld": {"cmd/internal/version", "flannel/daemon", "flannel/kube", "offload", "switch"}, "cmd/vxswitch-cni": {"api", "cmd/internal/version", "encap", "frame", "internal/jsontype", "internal/sys"}, "cmd/internal/version": {}, "cmd/internal/pcapfilter": {}, "cmd/internal/file": {"bgp", "calico", "discovery", "discovery/etcd", "encap", "evpn", "flannel/daemon", "frame", "node", "ovsdb", "setting", "setting/conf"}, "cmd/internal/settings": {"cmd/internal/file", "evpn", "setting/conf", "frame", "node", "policy", "port", "switch", "underlay", "underlay/afpacket", "vtep"},
	"release":          {}, // likewise: a tool
	"release/portable": {},

	"internal/batch":     {},
	"internal/datagrams": {"frame", "internal/hostaddr", "internal/sys"},
	"internal/filter":    {"frame", "internal/sys", "internal/wire"},
	"internal/delay":     {},
	"internal/follow":    {},
	"internal/hostaddr":  {},
	"internal/secret":    {},
	"internal/jsontype":  {},
	"internal/absent":    {},
	"internal/icmperr":   {"frame", "internal/hostaddr", "internal/mix", "internal/wire"},
	"internal/index":     {"internal/mix"},
	"internal/mix":       {},
	"internal/neighbour": {"frame", "internal/shares", "internal/wire"},
	"internal/pending":   {},
	"internal/perworker": {},
	"internal/ring":      {"frame"},
	"internal/shares":    {"frame"},
	"internal/wire":      {},
	"internal/wrap":      {"frame", "internal/absent"},
	"internal/gso":       {"frame", "internal/wire"},
	"internal/sys":       {"frame"},
	"internal/lab/carry": {"switch"}, "internal/lab/cni": {},
	"internal/lab/etcdlab": {"internal/lab/check", "internal/lab/netns"},
	"internal/lab/fake":    {"frame"},
	"internal/lab/kubelab": {"internal/lab/etcdlab", "internal/lab/netns"},
	"internal/lab/fault":   {},
	"internal/lab/bird":    {"internal/lab/netns"},
	"internal/lab/frr":     {"internal/lab/netns"},
	"internal/lab/gobgp":   {"internal/lab/netns"},
	"internal/lab/netns":   {"internal/lab/check"},
	"internal/lab/qemu":    {"internal/lab/netns"},
	"internal/lab/mem":     {"frame", "encap", "switch", "vtep", "underlay", "underlay/memory", "port"},

	"internal/drops": {"frame"},

	"internal/lab/underlaytest": {"frame", "internal/datagrams", "internal/lab/check", "internal/lab/fake", "internal/lab/fault", "internal/lab/netns"}, "internal/lab/check": {}, "internal/lab/docs": {}, "internal/lab/framing": {}, "internal/lab/geneve": {"encap", "frame"}, "internal/lab/packets": {}, "internal/lab/worst": {},

	"bench/compare": {"bench/tool", "encap", "frame", "internal/lab/netns", "internal/sys", "node", "port", "switch", "underlay", "vtep"},
	"bench/rig":     {"encap", "frame", "internal/lab/fake"},
	"bench/tool":    {},
	"bench/growth":  {"bench/rig", "bench/tool", "encap", "fdb", "frame", "switch", "vtep"},

	"bench": {}, "bench/soak": {}, "fuzz": {}, "internal/lab/kernel": {}, "internal/lab/overlap": {}, "internal/lab/chaos": {}, // only tests
	"internal/mix/mixtest": {"internal/mix"},
}

// outside is which packages may use what is not the standard library; tests and
// examples may use more.
var outside = map[string][]string{
	"l3":                        {"github.com/gaissmai/bart"},
	"policy":                    {"github.com/gaissmai/bart"},
	"bfd":                       {"golang.org/x/net/ipv4", "golang.org/x/net/ipv6", "golang.org/x/sys/unix"},
	"internal/datagrams":        {"golang.org/x/sys/unix", "golang.org/x/net/bpf"},
	"internal/sys":              {"golang.org/x/sys/unix"},
	"bench/compare":             {"golang.org/x/sys/unix"},
	"internal/lab/fault":        {"golang.org/x/sys/unix"},
	"internal/lab/netns":        {"golang.org/x/sys/unix"},
	"internal/lab/qemu":         {"golang.org/x/sys/unix"},
	"metrics":                   {"github.com/prometheus/client_golang/prometheus"},
	"cmd/vxswitchd":             {"github.com/prometheus/client_golang/prometheus", "github.com/prometheus/client_golang/prometheus/collectors", "github.com/prometheus/client_golang/prometheus/promhttp", "golang.org/x/sys/unix"},
	"cmd/vxsctl":                {"golang.org/x/sys/unix"},
	"cmd/vxswitch-cni":          {"github.com/containernetworking/cni/pkg/invoke", "github.com/containernetworking/cni/pkg/skel", "github.com/containernetworking/cni/pkg/types", "github.com/containernetworking/cni/pkg/types/100", "github.com/containernetworking/cni/pkg/version", "github.com/vishvananda/netlink", "golang.org/x/sys/unix"},
	"cmd/internal/pcapfilter":   {"golang.org/x/net/bpf"},
	"release":                   {"github.com/google/go-containerregistry/pkg/v1", "github.com/google/go-containerregistry/pkg/v1/empty", "github.com/google/go-containerregistry/pkg/v1/layout", "github.com/google/go-containerregistry/pkg/v1/mutate", "github.com/google/go-containerregistry/pkg/v1/tarball", "github.com/google/go-containerregistry/pkg/v1/types", "github.com/goreleaser/nfpm/v2", "github.com/goreleaser/nfpm/v2/deb", "github.com/goreleaser/nfpm/v2/files"},
	"release/portable":          {"golang.org/x/tools/go/packages"},
	"flannel/etcd":              {"go.etcd.io/etcd/api/v3/mvccpb", "go.etcd.io/etcd/client/v3", "go.uber.org/zap", "google.golang.org/grpc", "google.golang.org/grpc/backoff", "google.golang.org/grpc/codes", "google.golang.org/grpc/status"},
	"flannel/kube":              {"k8s.io/api/core/v1", "k8s.io/apimachinery/pkg/api/errors", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/types", "k8s.io/apimachinery/pkg/watch", "k8s.io/client-go/rest", "k8s.io/client-go/tools/cache"},
	"flannel/kube/apiserver":    {"k8s.io/apimachinery/pkg/api/errors", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/runtime/schema", "k8s.io/apimachinery/pkg/runtime/serializer", "k8s.io/apimachinery/pkg/util/net", "k8s.io/apimachinery/pkg/watch", "k8s.io/client-go/rest", "k8s.io/client-go/tools/cache", "k8s.io/client-go/tools/clientcmd", "k8s.io/klog/v2"},
	"calico/kube":               {"k8s.io/api/core/v1", "k8s.io/api/networking/v1", "k8s.io/apimachinery/pkg/api/errors", "k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/runtime/schema", "k8s.io/apimachinery/pkg/util/intstr", "k8s.io/apimachinery/pkg/watch", "k8s.io/client-go/rest", "k8s.io/client-go/tools/cache", "k8s.io/client-go/tools/clientcmd"},
	"bgp/internal/gobgp":        {"github.com/osrg/gobgp/v4/api", "github.com/osrg/gobgp/v4/pkg/apiutil", "github.com/osrg/gobgp/v4/pkg/packet/bgp", "github.com/osrg/gobgp/v4/pkg/server"},
	"evpn/internal/bgp":         {"golang.org/x/sys/unix"},
	"ovsdb/internal/store":      {"golang.org/x/sys/unix"},
	"evpn/internal/unnumbered":  {"golang.org/x/net/ipv6", "golang.org/x/sys/unix"},
	"hostnet":                   {"github.com/vishvananda/netlink", "github.com/vishvananda/netlink/nl", "github.com/vishvananda/netns", "golang.org/x/sys/unix"},
	"offload":                   {"github.com/vishvananda/netlink", "github.com/vishvananda/netlink/nl", "golang.org/x/sys/unix"},
	"offload/internal/datapath": {"github.com/cilium/ebpf", "github.com/cilium/ebpf/asm", "github.com/cilium/ebpf/btf", "github.com/cilium/ebpf/link", "golang.org/x/sys/unix"},
	"internal/lab/underlaytest": {"golang.org/x/sys/unix", "go.uber.org/goleak"},
	"underlay":                  {"golang.org/x/sys/unix", "golang.org/x/sys/windows", "golang.org/x/net/bpf", "golang.org/x/net/ipv4", "golang.org/x/net/ipv6"},
	"underlay/afpacket":         {"golang.org/x/sys/unix"},
	"internal/lab/packets":      {"github.com/google/gopacket"},
	"port/water":                {"github.com/songgao/water"},
}

const (
	xsys = "golang.org/x/sys"
	xnet = "golang.org/x/net"
)

// modules is which modules an importer of a public package links, on Linux, beside this one.
var modules = map[string][]string{
	"api":                 {xnet, xsys},
	"arp":                 {},
	"bfd":                 {xnet, xsys},
	"bfd/vxlan":           {xnet, xsys},
	"capture":             {},
	"control":             {bart},
	"control/controltest": {bart},
	"encap":               {},
	"fdb":                 {},
	"frame":               {},
	"l3":                  {bart},
	"node":                {bart, xnet, xsys},
	"policy":              {bart},
	"port":                {xsys},
	"port/porttest":       {xsys},
	"port/water":          {"github.com/songgao/water", xsys},
	"setting":             {},
	"setting/conf":        {},
	"snoop":               {},
	"switch":              {},
	"underlay":            {xnet, xsys},
	"underlay/afpacket":   {xnet, xsys},
	"underlay/memory":     {xnet, xsys},
	"vtep":                {},
}

const bart = "github.com/gaissmai/bart"

// An importer gets the modules of the list and no others.
func TestModules(t *testing.T) {
	for pkg := range allowed {
		if _, ok := modules[pkg]; !ok && !slices.ContainsFunc([]string{"internal/", "bench", "bgp", "calico", "fuzz", "metrics", "discovery", "evpn", "flannel", "hostnet", "offload", "ovsdb", "cmd/", "release"}, func(p string) bool { return strings.HasPrefix(pkg, p) }) {
			t.Errorf("%s: which modules?", pkg)
		}
	}
	for pkg, want := range modules {
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./"+pkg)
		list.Dir = "../.."
		list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "GOWORK=off")
		out, err := list.Output()
		if err != nil {
			t.Fatalf("%v: %v", list, err)
		}
		got := strings.Fields(string(out))
		slices.Sort(got)
		got = slices.DeleteFunc(slices.Compact(got), func(m string) bool { return m == module })
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("an importer of %s links %v, want %v", pkg, got, want)
		}
	}
}

// mostLines is how long a file may be, that of a test too.
const mostLines = 450

func TestArrows(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && file != "../.." {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if n := bytes.Count(text, []byte("\n")); n > mostLines {
			t.Errorf("%s: %d lines, must have at most %d", file, n, mostLines)
		}
		if strings.HasSuffix(file, "_test.go") {
			return nil
		}
		pkg := path.Dir(filepath.ToSlash(strings.TrimPrefix(file, filepath.FromSlash("../../"))))
		if pkg == "." {
			t.Errorf("%s: no Go package at the root", file)
		}
		arrows, ok := allowed[pkg]
		if !ok {
			if !strings.HasPrefix(pkg, "examples/") {
				t.Errorf("%s: not in the list of packages", pkg)
			}
			return nil
		}
		seen[pkg] = true
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if ours, ok := strings.CutPrefix(name, module+"/"); ok {
				if !slices.Contains(arrows, ours) {
					t.Errorf("%s: new arrow %s -> %s", file, pkg, ours)
				}
			} else if strings.Contains(strings.Split(name, "/")[0], ".") && !slices.Contains(outside[pkg], name) {
				t.Errorf("%s: new dependency %s -> %s", file, pkg, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range allowed {
		if !seen[pkg] {
			t.Errorf("%s: in the list and not there", pkg)
		}
	}
}
