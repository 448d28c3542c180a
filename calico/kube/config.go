package kube

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/vxswitch/vxswitch/setting"
)

// Defaults of a Config.
const (
	DefaultTimeout         = 10 * time.Second
	DefaultInterfacePrefix = "cali"
)

// Config says where the API server is.
type Config struct {
	URL        string       // of the API server; "" = that of Kubeconfig, or of the cluster in which the program is a pod
	Kubeconfig string       // a file, which is read again for each attempt to connect; "" = none
	REST       *rest.Config // replaces URL and Kubeconfig if it is not nil

	// UsePodCIDR is for clusters whose pods have the addresses of their node's pod CIDRs, by host-local IPAM: these are the blocks, as
	// USE_POD_CIDR of calico/node has them.
	UsePodCIDR bool

	InterfacePrefix string // how the names of workloads' interfaces begin; default "cali"

	Timeout time.Duration // of the start of a watch, at least 100 ms; a list may take six times as long; 0 = 10 s
}

func (c *Config) prefix() string { return cmp.Or(c.InterfacePrefix, DefaultInterfacePrefix) }

// Check returns the errors in the settings as [setting.Errors].
func (c *Config) Check() error {
	w := setting.Of("kube: Config")
	if c.Timeout != 0 && c.Timeout < 100*time.Millisecond {
		w.Want("Timeout", c.Timeout, "100ms or longer, or 0 for %v", DefaultTimeout)
	}
	if len(c.InterfacePrefix) > 4 {
		w.Want("InterfacePrefix", c.InterfacePrefix, "at most 4 bytes: the name of an interface has 15, and 11 are those of a hash")
	}
	return w.Err()
}

// CheckFiles returns as [setting.Errors] which files cannot be read: that of Kubeconfig, and those that REST or it name.
func (c *Config) CheckFiles() error {
	w := setting.Of("kube: Config")
	rc, field := c.REST, "REST"
	if rc == nil {
		if c.Kubeconfig == "" {
			return nil
		}
		if !readable(w, "Kubeconfig", c.Kubeconfig) {
			return w.Err()
		}
		var err error
		if rc, err = load(c); err != nil {
			w.Wrong("Kubeconfig", c.Kubeconfig, "%v", err)
			return w.Err()
		}
		field = "Kubeconfig"
	}
	for _, f := range []struct{ name, file string }{
		{"BearerTokenFile", rc.BearerTokenFile}, {"CertFile", rc.CertFile}, {"KeyFile", rc.KeyFile}, {"CAFile", rc.CAFile},
	} {
		if f.file != "" {
			readable(w, field+"."+f.name, f.file)
		}
	}
	return w.Err()
}

// readable reports whether a file can be read, and adds an error if not.
func readable(w *setting.Check, field, file string) bool {
	_, err := os.ReadFile(file)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	if err != nil {
		w.Wrong(field, file, "%v", err)
	}
	return err == nil
}
