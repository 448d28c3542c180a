package resource

import (
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/calico/internal/selector"
	"github.com/vxswitch/vxswitch/frame"
)

// A Felix is what a FelixConfiguration says of workloads and of VXLAN. What is nil or 0 is not said.
type Felix struct {
	IPIP, VXLAN *bool     // workloads may make such tunnels
	Spoofing    *bool     // workloads may have Endpoint.Spoofs
	VXLANVNI    frame.VNI // of the cluster
	VXLANPort   uint16    // likewise

	Nodes *selector.Selector // that it is for, if its name does not say so
	Made  time.Time
}

type rawFelix struct {
	Metadata struct {
		CreationTimestamp string `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeSelector string `json:"nodeSelector"`

		IPIP      *bool  `json:"allowIPIPPacketsFromWorkloads"`
		VXLAN     *bool  `json:"allowVXLANPacketsFromWorkloads"`
		Spoofing  string `json:"workloadSourceSpoofing"`
		VXLANVNI  int    `json:"vxlanVNI"`
		VXLANPort int    `json:"vxlanPort"`
	} `json:"spec"`
}

func (r *rawFelix) read() (*Felix, error) {
	s := &r.Spec
	if s.VXLANPort < 0 || s.VXLANPort > 0xffff {
		return nil, wrong("spec.vxlanPort", s.VXLANPort, "must be 1 to 65535")
	}
	if s.VXLANVNI < 0 || s.VXLANVNI > int(frame.MaxVNI) {
		return nil, wrong("spec.vxlanVNI", s.VXLANVNI, "must be 1 to %d", frame.MaxVNI)
	}
	f := &Felix{IPIP: s.IPIP, VXLAN: s.VXLAN, VXLANVNI: frame.VNI(s.VXLANVNI), VXLANPort: uint16(s.VXLANPort)}
	f.Made, _ = time.Parse(time.RFC3339, r.Metadata.CreationTimestamp)
	var err error
	if f.Nodes, err = choose("spec.nodeSelector", s.NodeSelector); err != nil {
		return nil, err
	}
	switch {
	case strings.EqualFold(s.Spoofing, "Any"):
		f.Spoofing = new(true)
	case strings.EqualFold(s.Spoofing, "Disabled"):
		f.Spoofing = new(false)
	case s.Spoofing != "":
		return nil, wrong("spec.workloadSourceSpoofing", s.Spoofing, "must be Any or Disabled")
	}
	return f, nil
}
