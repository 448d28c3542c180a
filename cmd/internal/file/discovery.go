package file

import (
	"reflect"

	"github.com/vxswitch/vxswitch/discovery"
	"github.com/vxswitch/vxswitch/discovery/etcd"
	"github.com/vxswitch/vxswitch/setting"
)

// Discovery says who the node is among others that find each other, and where it finds them. All segments with the tunnel take part.
type Discovery struct {
	discovery.Config
	Etcd *etcd.Config `json:"etcd,omitzero"` // lists VTEPs, beside servers or in their place; default none
}

// Check returns the errors in the section as [setting.Errors].
func (d *Discovery) Check() error {
	w := setting.Of("discovery: Config")
	w.Add("", d.Config.Check())
	if d.Etcd != nil {
		w.Add("Etcd", d.Etcd.Check())
	}
	return w.Err()
}

// CheckFiles returns as [setting.Errors] which files of etcd cannot be read. That of keys is read when the section is carried out.
func (d *Discovery) CheckFiles() error {
	w := setting.Of("discovery: Config")
	if d.Etcd != nil {
		w.Add("Etcd", d.Etcd.CheckFiles())
	}
	return w.Err()
}

// Restarts reports whether a Speaker cannot change to another section while it runs.
func (d *Discovery) Restarts(next *Discovery) bool {
	return d.Config.Restarts(&next.Config) || !reflect.DeepEqual(d.Etcd, next.Etcd)
}

// New makes the Speaker of the section, with other settings that a file does not have.
func (d *Discovery) New(n discovery.Node, set func(*discovery.Config)) (*discovery.Speaker, error) {
	c := d.Config
	if d.Etcd != nil {
		r, err := etcd.New(d.Etcd)
		if err != nil {
			return nil, err
		}
		c.Registry = r
	}
	set(&c)
	return discovery.New(n, &c)
}
