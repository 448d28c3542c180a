package offload

import (
	"errors"
	"io"
	"maps"
	"sync"

	"github.com/vxswitch/vxswitch/offload/internal/datapath"
)

// devices has the programs that are attached.
type devices struct {
	dp   *datapath.Datapath
	home *home
	used *sync.Map // of routes
	with map[need]io.Closer
}

// attach attaches a program, if it is not.
func (d *devices) attach(n need) error {
	if n.index == 0 || d.with[n] != nil {
		return nil
	}
	d.used.Store(n.index, nil)
	var c io.Closer
	err := d.home.do(func() (err error) {
		if n.underlay {
			c, err = d.dp.AttachUnderlay(n.index)
		} else {
			c, err = d.dp.AttachPort(n.index, n.dir)
		}
		return err
	})
	if err != nil {
		return err
	}
	if d.with == nil {
		d.with = map[need]io.Closer{}
	}
	d.with[n] = c
	return nil
}

// tidy detaches what is on devices that have left the network namespace.
func (d *devices) tidy() {
	maps.DeleteFunc(d.with, func(n need, c io.Closer) bool {
		if _, err := d.home.link.LinkByIndex(n.index); err == nil {
			return false
		}
		c.Close()
		d.used.Delete(n.index)
		return true
	})
}

func (d *devices) close() (err error) {
	for _, c := range d.with {
		err = errors.Join(err, c.Close())
	}
	clear(d.with)
	return err
}
