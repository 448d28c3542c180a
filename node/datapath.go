package node

import (
	"fmt"
	"io"

	"github.com/vxswitch/vxswitch/setting"
	vswitch "github.com/vxswitch/vxswitch/switch"
)

// Datapath says where decided flows are carried.
type Datapath uint8

// Datapaths.
const (
	DatapathUser   Datapath = iota // in the switch
	DatapathKernel                 // in the kernel, by eBPF (Options.Offload)
	DatapathAuto                   // in the kernel where that works, else in the switch
)

var datapathWords = []string{DatapathUser: "user", DatapathKernel: "kernel", DatapathAuto: "auto"}

// String returns the datapath as settings call it.
func (d Datapath) String() string { return setting.Name(datapathWords, d) }

// MarshalText implements [encoding.TextMarshaler].
func (d Datapath) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what String writes.
func (d *Datapath) UnmarshalText(text []byte) error { return setting.Parse(d, datapathWords, text) }

// An offloader opens and closes the offload of the switch.
type offloader struct {
	open func(*vswitch.Switch) (io.Closer, error) // of Options
	on   io.Closer                                // nil while flows are carried in the switch
	why  error                                    // why DatapathAuto stays in the switch
}

// setDatapath opens or closes the offload. n.mu is held.
func (n *Node) setDatapath(d Datapath) error {
	o := &n.offload
	if (d != DatapathUser) == (o.on != nil) {
		return nil
	}
	if o.on != nil {
		return o.close()
	}
	err := error(&setting.Error{Path: "datapath", Value: d.String(), Text: "this program has no offload (node.Options.Offload)"})
	if o.open != nil {
		var on io.Closer
		if on, err = o.open(n.sw); err == nil {
			o.on = on
			return nil
		}
	}
	if d == DatapathKernel {
		if o.open != nil {
			err = fmt.Errorf("datapath: %q: %w", d, err)
		}
		return err
	}
	if o.why == nil || o.why.Error() != err.Error() {
		n.log.Warn("flows stay in user space", "datapath", d, "err", err)
	}
	o.why = err
	return nil
}

// close ends the offload, if there is one.
func (o *offloader) close() (err error) {
	if o.on != nil {
		err = o.on.Close()
		o.on = nil
	}
	return err
}

// Offload returns what Options.Offload has opened, nil while flows are carried in the switch.
func (n *Node) Offload() io.Closer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.offload.on
}

// Datapath returns where decided flows are carried now, DatapathUser or DatapathKernel, and with DatapathAuto why not in the
// kernel.
func (n *Node) Datapath() (Datapath, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.offload.on != nil {
		return DatapathKernel, nil
	}
	if n.cfg.Datapath == DatapathAuto {
		return DatapathUser, n.offload.why
	}
	return DatapathUser, nil
}
