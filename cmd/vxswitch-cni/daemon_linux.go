package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/encap"
	"github.com/vxswitch/vxswitch/frame"
)

// A daemon is the vxswitchd behind a socket.
type daemon struct{ *api.Client }

func (c *config) daemon() daemon { return daemon{api.NewClient(c.Socket)} }

// again does a request until the node has time for it: as many plugins run at once as containers start.
func again[T any](ctx context.Context, f func() (T, error)) (T, error) {
	for {
		x, err := f()
		if !api.Busy(err) {
			return x, err
		}
		t := time.NewTimer(50*time.Millisecond + rand.N(200*time.Millisecond))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return x, err
		}
	}
}

// away reports whether no node listens.
func away(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

func isStatus(err error, status int) bool {
	e, ok := errors.AsType[*api.Error](err)
	return ok && e.Status == status
}

// failed returns the error of a request with the code that it has for a runtime.
func failed(err error) error {
	code := types.ErrInternal
	switch {
	case away(err), api.Busy(err):
		code = types.ErrTryAgainLater
	case isStatus(err, http.StatusNotFound):
		code = types.ErrInvalidNetworkConfig
	}
	return types.NewError(code, "vxswitchd: "+err.Error(), "")
}

// A segment is what the plugin asks of a segment of the node.
type segment struct {
	mtu  int      // of the longest IP packet
	down []string // its tunnels that do not run, with the reason
}

const defaultMTU = 1500 // of a segment without a tunnel

// segment returns the segment of the network, an error if there is none.
func (d daemon) segment(ctx context.Context, c *config) (s segment, err error) {
	vni := frame.VNI(*c.VNI)
	text, err := again(ctx, func() ([]byte, error) {
		text, _, err := d.Part(ctx, api.Part{List: "segments", Name: strconv.Itoa(int(vni))})
		return text, err
	})
	if isStatus(err, http.StatusNotFound) {
		return s, invalid("vni: %d: vxswitchd has no such segment; its file must have it", vni)
	}
	var cfg struct {
		InnerVLAN string
		Tunnel    string
		Tunnels   []struct{ Tunnel string }
	}
	if err == nil {
		err = json.Unmarshal(text, &cfg)
	}
	if err != nil {
		return s, failed(err)
	}
	ports, err := again(ctx, func() ([]api.Port, error) { return d.Ports(ctx) })
	if err != nil {
		return s, failed(err)
	}
	in := map[string]bool{cfg.Tunnel: true}
	for _, t := range cfg.Tunnels {
		in[t.Tunnel] = true
	}
	for _, p := range ports {
		if !in[p.Name] {
			continue
		}
		if p.State != "up" {
			s.down = append(s.down, fmt.Sprintf("tunnel %s: %s", p.Name, cmp.Or(p.Error, "down")))
			continue
		}
		mtu := p.MTU - encap.EthernetLen
		if cfg.InnerVLAN == "pass" {
			mtu -= encap.VLANTagLen
		}
		if s.mtu == 0 || mtu < s.mtu {
			s.mtu = mtu
		}
	}
	s.mtu = cmp.Or(c.MTU, s.mtu, defaultMTU)
	return s, nil
}

// attach adds a port to the segment. One with the name is left from an attachment that has ended without DEL.
func (d daemon) attach(ctx context.Context, c *config, name, netns string, mtu int) error {
	vni := frame.VNI(*c.VNI)
	x := api.PortChange{Op: api.Add, Name: name, Type: "interface", VNI: &vni, Owner: c.owner()}
	if c.tap() {
		x.Type, x.Namespace, x.MTU = "tap", netns, mtu
	}
	change := func() (api.ConfigChange, error) { return d.ChangePort(ctx, x, nil) }
	_, err := again(ctx, change)
	if isStatus(err, http.StatusConflict) {
		if err := d.detach(ctx, name); err != nil {
			return err
		}
		_, err = again(ctx, change)
	}
	if err != nil {
		return failed(err)
	}
	return nil
}

// detach deletes a port, if there is one. Without a node there is none: it forgets ports without a device when it starts.
func (d daemon) detach(ctx context.Context, name string) error {
	_, err := again(ctx, func() (api.ConfigChange, error) {
		return d.ChangePort(ctx, api.PortChange{Op: api.Del, Name: name}, nil)
	})
	if err != nil && !away(err) && !isStatus(err, http.StatusNotFound) {
		return failed(err)
	}
	return nil
}
