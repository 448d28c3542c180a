package kube

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

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

// CheckFiles returns as [setting.Errors] which files cannot be read: that of Kubeconfig and those that it names, or those of REST.
func (c *Config) CheckFiles() error {
	w := setting.Of("kube: Config")
	if rc := c.REST; rc != nil {
		readable(w, "REST.BearerTokenFile", rc.BearerTokenFile)
		readable(w, "REST.CertFile", rc.CertFile)
		readable(w, "REST.KeyFile", rc.KeyFile)
		readable(w, "REST.CAFile", rc.CAFile)
	} else if readable(w, "Kubeconfig", c.Kubeconfig) && c.Kubeconfig != "" {
		c.checkKubeconfig(w)
	}
	return w.Err()
}

// checkKubeconfig adds the errors in the file of Kubeconfig, of which the current context counts.
func (c *Config) checkKubeconfig(w *setting.Check) {
	all, err := clientcmd.LoadFromFile(c.Kubeconfig)
	if err == nil {
		err = clientcmd.ResolveLocalPaths(all)
	}
	if err != nil {
		w.Wrong("Kubeconfig", c.Kubeconfig, "%v", err)
		return
	}
	at := all.Contexts[all.CurrentContext]
	if at == nil {
		w.Wrong("Kubeconfig", c.Kubeconfig, "current-context %q: there is no such context", all.CurrentContext)
		return
	}
	if u := all.AuthInfos[at.AuthInfo]; u != nil {
		readable(w, "Kubeconfig: tokenFile", u.TokenFile)
		readable(w, "Kubeconfig: client-certificate", u.ClientCertificate)
		readable(w, "Kubeconfig: client-key", u.ClientKey)
	}
	if s := all.Clusters[at.Cluster]; s != nil {
		readable(w, "Kubeconfig: certificate-authority", s.CertificateAuthority)
	}
}

// readable reports whether a file can be read, if there is one, and adds an error if not.
func readable(w *setting.Check, field, file string) bool {
	if file == "" {
		return true
	}
	_, err := os.ReadFile(file)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		w.Wrong(field, file, "%v", err)
	}
	return err == nil
}
