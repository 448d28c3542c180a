package daemon

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/vxswitch/vxswitch/node"
	"github.com/vxswitch/vxswitch/setting"
	"github.com/vxswitch/vxswitch/setting/conf"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// A Program is what Main is part of.
type Program struct {
	Version        string // what -version prints
	Stdout, Stderr io.Writer

	// Cluster opens the store in Kubernetes, and Offload has the kernel carry flows of a switch. They come from outside, so that
	// who imports this package links neither Kubernetes' client nor eBPF; the program refuses the flags of one that is nil.
	Cluster func(*Cluster) (ClusterStore, error)
	Offload func(*vswitch.Switch) (io.Closer, error)
}

// flags are those of flanneld, with its names, and a few more.
type flags struct {
	cfg    Config
	margin int   // minutes
	asked  error // for what is absent

	kube        Cluster
	kubernetes  bool
	unavailable bool

	datapath node.Datapath

	healthzIP   string
	healthzPort int

	verbose int
	version bool
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }
func (l *list) Set(s string) error {
	if s != "" { // of scripts: none, as with flanneld
		*l = append(*l, s)
	}
	return nil
}

// address is a flag with an address.
type address struct{ *netip.Addr }

func (a address) String() string { return "" }
func (a address) Set(s string) (err error) {
	if *a.Addr = (netip.Addr{}); s == "" { // likewise
		return nil
	}
	if *a.Addr, err = netip.ParseAddr(s); err != nil {
		return errors.New("must be the address of one host")
	}
	return nil
}

// number is a flag with a number.
type number struct{ *int }

func (n number) String() string { return "" }
func (n number) Set(s string) (err error) {
	if *n.int, err = strconv.Atoi(s); err != nil {
		return errors.New("must be a whole number")
	}
	return nil
}

// truth is a flag that is set or not.
type truth struct{ *bool }

func (t truth) String() string   { return "" }
func (t truth) IsBoolFlag() bool { return true }
func (t truth) Set(s string) (err error) {
	if *t.bool, err = strconv.ParseBool(s); err != nil {
		return errors.New("must be true or false")
	}
	return nil
}

// absent are the flags of flanneld that have no effect here, what they would have to say, and what to do.
var absent = []struct{ name, harmless, why string }{
	{"iptables-resync", "", "the rules are set once, in an nft table of their own"},
	{"iptables-forward-rules", "false", "allow forwarding in your own rules; in an nft table of its own, accept means nothing to others"},
	{"ip-blackhole-route", "false", "a route for addresses without a pod is not built"},
	{"vmodule", "", "the log has two levels, -v 0 and -v 1"},
	{"log_backtrace_at", "", "the log has two levels, -v 0 and -v 1"},
}

const usage = `Usage: vxflanneld [flags]

Make this host a node of a flannel network. Each flag may be in the environment, as FLANNELD_ETCD_ENDPOINTS for -etcd-endpoints.
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

Flags that flanneld has not:

  -mode tap                  the host's kernel routes; that the switch does is for vxswitchd
  -dev NAME                  device; default flannel. and the VNI
  -generation N              of vxlan: 3 all at once, 2 and 1 on demand; default 3
  -datapath user|kernel|auto  where flows are carried: in vxflanneld, in the kernel by eBPF, or there where that works; default user
`

// parse reads flags and environment. The environment gives way.
func parse(args, env []string) (*flags, error) {
	o := &flags{cfg: Config{Mode: TAP, Generation: 3}, margin: 60, unavailable: true}
	fs := o.set()
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 && o.asked == nil { // else it may be the value of what is absent
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err := fromEnv(fs, env); err != nil {
		return nil, err
	}
	if o.asked != nil {
		return nil, o.asked
	}
	if o.kubernetes {
		if err := o.kube.name(env); err != nil {
			return nil, err
		}
	}
	o.cfg.RenewMargin = time.Duration(o.margin) * time.Minute
	return o, o.check()
}

// set returns what sets the flags.
func (o *flags) set() *flag.FlagSet {
	c := &o.cfg
	fs := flag.NewFlagSet("vxflanneld", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Func("etcd-endpoints", "", func(s string) error {
		c.Endpoints = nil
		for e := range strings.SplitSeq(s, ",") {
			if e = strings.TrimSpace(e); e != "" {
				c.Endpoints = append(c.Endpoints, e)
			}
		}
		return nil
	})
	fs.StringVar(&c.Prefix, "etcd-prefix", "", "")
	fs.StringVar(&c.CertFile, "etcd-certfile", "", "")
	fs.StringVar(&c.KeyFile, "etcd-keyfile", "", "")
	fs.StringVar(&c.CAFile, "etcd-cafile", "", "")
	fs.StringVar(&c.Username, "etcd-username", "", "")
	fs.StringVar(&c.Password, "etcd-password", "", "")
	fs.Var(truth{&o.kubernetes}, "kube-subnet-mgr", "")
	fs.StringVar(&o.kube.URL, "kube-api-url", "", "")
	fs.StringVar(&o.kube.Kubeconfig, "kubeconfig-file", "", "")
	fs.StringVar(&o.kube.Prefix, "kube-annotation-prefix", "", "")
	fs.StringVar(&o.kube.NetworkFile, "net-config-path", "", "")
	fs.Var(truth{&o.unavailable}, "set-node-network-unavailable", "")
	fs.Var((*list)(&c.Iface), "iface", "")
	fs.Var((*list)(&c.IfaceRegex), "iface-regex", "")
	fs.Var(address{&c.IfaceCanReach}, "iface-can-reach", "")
	fs.Var(address{&c.PublicIP}, "public-ip", "")
	fs.Var(address{&c.PublicIPv6}, "public-ipv6", "")
	fs.StringVar(&c.SubnetFile, "subnet-file", DefaultSubnetFile, "")
	fs.Var(number{&o.margin}, "subnet-lease-renew-margin", "")
	fs.Var(truth{&c.IPMasq}, "ip-masq", "")
	fs.Var(truth{&c.NoFullyRandom}, "ip-masq-fully-random-disable", "")
	fs.StringVar(&o.healthzIP, "healthz-ip", "0.0.0.0", "")
	fs.Var(number{&o.healthzPort}, "healthz-port", "")
	fs.Func("mode", "", func(s string) error {
		switch s {
		case "tap":
			return nil
		case "l3":
			return errors.New("pods that are ports of the switch are for vxswitchd: use the section flannel of its file")
		}
		return errors.New("must be tap")
	})
	fs.StringVar(&c.Device, "dev", "", "")
	fs.Var(number{&c.Generation}, "generation", "")
	fs.TextVar(&o.datapath, "datapath", node.DatapathUser, "")
	fs.Var(number{&o.verbose}, "v", "")
	fs.Var(truth{&o.version}, "version", "")
	for _, x := range absent {
		fs.BoolFunc(x.name, "", func(s string) error {
			if s != x.harmless || s == "" {
				o.asked = cmp.Or(o.asked, fmt.Errorf("-%s: vxflanneld has no such flag: %s", x.name, x.why))
			}
			return nil
		})
	}
	return fs
}

// check returns what is wrong with the flags, by their names.
func (o *flags) check() error {
	switch {
	case o.margin < 1 || o.margin > 24*60-1:
		return fmt.Errorf("-subnet-lease-renew-margin: %d: must be 1 to 1439", o.margin)
	case o.healthzPort < 0 || o.healthzPort > 65535:
		return fmt.Errorf("-healthz-port: %d: must be 0 to 65535", o.healthzPort)
	case !listenable(o.healthzIP):
		return fmt.Errorf("-healthz-ip: %q: must be an address of this host, or 0.0.0.0 for all", o.healthzIP)
	case o.cfg.SubnetFile == "":
		return errors.New("-subnet-file: it is needed")
	}
	return flagged(o.cfg.Check())
}

// listenable reports whether a text is an address to listen on. Other names would be looked up.
func listenable(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || host == "" || host == "localhost"
}

// flagged calls settings by their flags.
func flagged(err error) error {
	var errs setting.Errors
	if e := (*setting.Error)(nil); !errors.As(conf.Keyed[Config]("", err), &errs) && errors.As(err, &e) {
		errs = setting.Errors{e}
	}
	for _, e := range errs {
		key, _, _ := strings.Cut(e.Path, "[")
		if slices.ContainsFunc(conf.Fields(reflect.TypeFor[Config]()), func(f conf.Field) bool { return f.Key == key }) {
			e.Path = "-" + flagOf(key)
		}
	}
	return err
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// flagOf returns the flag of a key: etcd-endpoints for etcdEndpoints, public-ip for publicIP, etcd-keyfile for etcdKeyFile.
func flagOf(key string) string {
	var b strings.Builder
	for i, c := range key {
		if unicode.IsUpper(c) && !unicode.IsUpper(rune(key[i-1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return strings.NewReplacer("cert-file", "certfile", "key-file", "keyfile").Replace(b.String())
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
