package kube

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of a Config.
const (
	DefaultPrefix      = "flannel.alpha.coreos.com"
	DefaultNetworkFile = "/etc/kube-flannel/net-conf.json"
	DefaultTimeout     = 10 * time.Second
)

// Config says where the API server is, and which node this is.
type Config struct {
	URL        string       // of the API server; "" = that of Kubeconfig, or of the cluster in which the program is a pod
	Kubeconfig string       // a file; "" = none
	REST       *rest.Config // replaces URL and Kubeconfig if it is not nil

	Node string // name of this node
	Pod  string // without Node, NAMESPACE/NAME of the pod in which the program is: its node

	// Prefix is that of the annotations: a domain, and perhaps a slash and the beginning of a name, after which comes a hyphen;
	// default flannel.alpha.coreos.com.
	Prefix string

	NetworkFile string // with the JSON of the network; default /etc/kube-flannel/net-conf.json
	ConfigMap   string // NAMESPACE/NAME of the one that has net-conf.json, such as kube-flannel/kube-flannel-cfg, in place of NetworkFile

	Timeout time.Duration // of each call, and of a watch until it begins, at least 100 ms; a list of all nodes may take six times as long; 0 = 10 s
}

// prefixes are those that flannel takes.
var prefixes = regexp.MustCompile(`^(?:[a-z0-9_-]+\.)+[a-z0-9_-]+/(?:[a-z0-9_-]+-)?$`)

// prefix returns the beginning of the annotations' names.
func (c *Config) prefix() string {
	p := cmp.Or(c.Prefix, DefaultPrefix)
	if !strings.Contains(p, "/") {
		return p + "/"
	}
	if !strings.HasSuffix(p, "/") && !strings.HasSuffix(p, "-") {
		return p + "-"
	}
	return p
}

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of("kube: Config")
	if c.Node == "" && c.Pod == "" {
		w.Wrong("Node", "", "the name of this node is needed, or Pod")
	}
	for name, s := range map[string]string{"Pod": c.Pod, "ConfigMap": c.ConfigMap} {
		if ns, x, ok := strings.Cut(s, "/"); s != "" && (!ok || ns == "" || x == "" || strings.Contains(x, "/")) {
			w.Want(name, s, "NAMESPACE/NAME")
		}
	}
	if !prefixes.MatchString(c.prefix()) {
		w.Want("Prefix", c.Prefix, "a domain in lower case, such as %s, or a domain, a slash and a word", DefaultPrefix)
	}
	if c.NetworkFile != "" && c.ConfigMap != "" {
		w.Wrong("ConfigMap", c.ConfigMap, "it is of no use with a NetworkFile")
	}
	if c.Timeout != 0 && c.Timeout < 100*time.Millisecond {
		w.Want("Timeout", c.Timeout, "100ms or longer, or 0 for %v", DefaultTimeout)
	}
	return w.Err()
}
