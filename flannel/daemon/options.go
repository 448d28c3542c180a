package daemon

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/flannel/etcd"
)

// options are the flags, with the names of flanneld.
type options struct {
	etcd      etcd.Config
	endpoints string

	kube        Cluster
	kubernetes  bool
	unavailable bool

	ifaces, regexes list
	canReach        string
	publicIP        string
	publicIPv6      string

	subnetFile string
	margin     int // minutes
	masq       bool
	noRandom   bool

	healthzIP   string
	healthzPort int

	mode       string
	device     string
	generation int
	verbose    int
	version    bool
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// absent are the flags of flanneld that have no effect here, what they would have to say, and what to do.
var absent = []struct{ name, harmless, why string }{
	{"iptables-resync", "", "the rules are set once, in an nft table of their own"},
	{"iptables-forward-rules", "false", "allow forwarding in your own rules; in an nft table of its own, accept means nothing to others"},
	{"ip-blackhole-route", "false", "a route for addresses without a pod is not built"},
}

const usage = `Usage: vxflanneld [flags]

Make this host a node of a flannel network. Each flag may be in the environment: FLANNELD_ETCD_ENDPOINTS for -etcd-endpoints.
With -kube-subnet-mgr, NODE_NAME is the name of the node, or POD_NAMESPACE and POD_NAME that of the pod.

  -etcd-endpoints URL,...    default http://127.0.0.1:2379
  -etcd-prefix PATH          default /coreos.com/network
  -etcd-certfile FILE, -etcd-keyfile FILE, -etcd-cafile FILE
  -etcd-username NAME, -etcd-password TEXT
  -kube-subnet-mgr           leases are in the nodes of Kubernetes, not in etcd
  -kube-api-url URL, -kubeconfig-file FILE  default: the program is a pod
  -kube-annotation-prefix NAME  default flannel.alpha.coreos.com
  -net-config-path FILE      the network, with -kube-subnet-mgr; default /etc/kube-flannel/net-conf.json
  -set-node-network-unavailable  when pods can be made, set the node's condition NetworkUnavailable to False; default true
  -iface NAME|ADDR           interface to other nodes, several in order; default that of the default route
  -iface-regex EXPR          likewise, by names and addresses, after those of -iface
  -iface-can-reach ADDR      likewise, from which an address is reached
  -public-ip ADDR            address that other nodes send to; default that of the interface
  -public-ipv6 ADDR
  -subnet-file FILE          default /run/flannel/subnet.env
  -subnet-lease-renew-margin MINUTES  1 to 1439; default 60
  -ip-masq                   masquerade what leaves the network
  -ip-masq-fully-random-disable
  -healthz-ip ADDR, -healthz-port PORT  serve /healthz and /readyz; default 0.0.0.0, no port
  -v N                       1 or more: also what is normal
  -version

Not flanneld's:

  -mode tap                  the host's kernel routes
  -dev NAME                  device; default flannel. and the VNI
  -generation N              of vxlan: 3 all at once, 2 and 1 on demand; default 3
`

// parse reads flags and environment. The environment gives way.
func parse(args, env []string) (o *options, err error) {
	o = new(options)
	fs := flag.NewFlagSet("vxflanneld", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.endpoints, "etcd-endpoints", etcd.DefaultEndpoint, "")
	fs.StringVar(&o.etcd.Prefix, "etcd-prefix", etcd.DefaultPrefix, "")
	fs.StringVar(&o.etcd.CertFile, "etcd-certfile", "", "")
	fs.StringVar(&o.etcd.KeyFile, "etcd-keyfile", "", "")
	fs.StringVar(&o.etcd.CAFile, "etcd-cafile", "", "")
	fs.StringVar(&o.etcd.Username, "etcd-username", "", "")
	fs.StringVar(&o.etcd.Password, "etcd-password", "", "")
	fs.BoolVar(&o.kubernetes, "kube-subnet-mgr", false, "")
	fs.StringVar(&o.kube.URL, "kube-api-url", "", "")
	fs.StringVar(&o.kube.Kubeconfig, "kubeconfig-file", "", "")
	fs.StringVar(&o.kube.Prefix, "kube-annotation-prefix", "flannel.alpha.coreos.com", "")
	fs.StringVar(&o.kube.NetworkFile, "net-config-path", "/etc/kube-flannel/net-conf.json", "")
	fs.BoolVar(&o.unavailable, "set-node-network-unavailable", true, "")
	fs.Var(&o.ifaces, "iface", "")
	fs.Var(&o.regexes, "iface-regex", "")
	fs.StringVar(&o.canReach, "iface-can-reach", "", "")
	fs.StringVar(&o.publicIP, "public-ip", "", "")
	fs.StringVar(&o.publicIPv6, "public-ipv6", "", "")
	fs.StringVar(&o.subnetFile, "subnet-file", "/run/flannel/subnet.env", "")
	fs.IntVar(&o.margin, "subnet-lease-renew-margin", 60, "")
	fs.BoolVar(&o.masq, "ip-masq", false, "")
	fs.BoolVar(&o.noRandom, "ip-masq-fully-random-disable", false, "")
	fs.StringVar(&o.healthzIP, "healthz-ip", "0.0.0.0", "")
	fs.IntVar(&o.healthzPort, "healthz-port", 0, "")
	fs.StringVar(&o.mode, "mode", "tap", "")
	fs.StringVar(&o.device, "dev", "", "")
	fs.IntVar(&o.generation, "generation", 3, "")
	fs.IntVar(&o.verbose, "v", 0, "")
	fs.BoolVar(&o.version, "version", false, "")
	for _, x := range absent {
		fs.BoolFunc(x.name, "", func(s string) error {
			if s == x.harmless && s != "" {
				return nil
			}
			return errors.New(x.why)
		})
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err := fromEnv(fs, env); err != nil {
		return nil, err
	}
	if o.kubernetes {
		if err := o.kube.name(env); err != nil {
			return nil, err
		}
	}
	return o, o.check()
}

// fromEnv sets the flags that are not given from the environment.
func fromEnv(fs *flag.FlagSet, env []string) (err error) {
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	values := map[string]string{}
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		values[name] = value
	}
	fs.VisitAll(func(f *flag.Flag) {
		name := "FLANNELD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := values[name]
		if !ok || value == "" || given[f.Name] || err != nil {
			return
		}
		if e := fs.Set(f.Name, value); e != nil {
			err = fmt.Errorf("%s: %q: %w", name, value, e)
		}
	})
	return err
}

func (o *options) check() error {
	for _, e := range strings.Split(o.endpoints, ",") {
		if e = strings.TrimSpace(e); e != "" {
			o.etcd.Endpoints = append(o.etcd.Endpoints, e)
		}
	}
	if err := o.etcd.Check(); err != nil {
		return err
	}
	for name, s := range map[string]string{"public-ip": o.publicIP, "public-ipv6": o.publicIPv6, "iface-can-reach": o.canReach} {
		if a, err := netip.ParseAddr(s); s != "" && (err != nil || a.IsUnspecified() || a.IsMulticast() || name == "public-ip" && !a.Is4() || name == "public-ipv6" && !a.Is6()) {
			return fmt.Errorf("-%s: %q: must be the address of one host", name, s)
		}
	}
	for _, e := range o.regexes {
		if _, err := regexp.Compile(e); err != nil {
			return fmt.Errorf("-iface-regex: %w", err)
		}
	}
	switch {
	case o.margin < 1 || o.margin > 24*60-1:
		return fmt.Errorf("-subnet-lease-renew-margin: %d: must be 1 to 1439", o.margin)
	case o.healthzPort < 0 || o.healthzPort > 65535:
		return fmt.Errorf("-healthz-port: %d: must be 0 to 65535", o.healthzPort)
	case o.mode == "l3":
		return errors.New("-mode: l3: pods as ports of the switch are not built in this program; package routed has them")
	case o.mode != "tap":
		return fmt.Errorf("-mode: %q: must be tap", o.mode)
	case o.generation < 1 || o.generation > 3:
		return fmt.Errorf("-generation: %d: must be 1 to 3", o.generation)
	case o.subnetFile == "":
		return errors.New("-subnet-file: it is needed")
	}
	return nil
}

// renewMargin is how long before its end a lease is renewed.
func (o *options) renewMargin() time.Duration { return time.Duration(o.margin) * time.Minute }
