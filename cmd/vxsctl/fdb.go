package main

import (
	"context"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/frame"
)

// fdb changes FDBs.
func (s *session) fdb(ctx context.Context, w *words) error {
	op := w.op
	c := api.FDBChange{Op: op, MAC: w.next()}
	if w.check("mac", c.MAC) != nil {
		return w.required(op, c.MAC, "a MAC such as 02:00:00:00:00:01, or for the flood list 00:00:00:00:00:00 or that of a group")
	}
	keys, err := w.keys("dst", "dev", "vni", "tunnel")
	if err != nil {
		return err
	}
	c.Dst, c.Dev, c.Tunnel = keys["dst"], keys["dev"], keys["tunnel"]
	vni := vniOf(keys)
	mac, _ := frame.ParseMAC(c.MAC)
	switch {
	case vni == nil:
		return w.wrong("%s: requires vni, %s", op, values["vni"].text)
	case c.Dst != "" && c.Dev != "":
		return w.wrong("%s: takes either dst or dev", op)
	case c.Tunnel != "" && c.Dst == "":
		return w.wrong("%s: tunnel requires dst ADDR", op)
	case (mac.IsZero() || mac.IsGroup()) && c.Dst == "":
		return w.wrong("%s: the flood list requires dst ADDR", op)
	case c.Dst == "" && c.Dev == "" && op != api.Del:
		return w.wrong("%s: requires dst ADDR or dev PORT", op)
	}
	c.VNI = *vni
	return s.post(ctx, "/v1/fdb", c)
}
