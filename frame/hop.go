package frame

// A Hop is where a router sends a packet: the segment, and the MACs that the frame gets. The zero Hop is none.
type Hop struct {
	VNI   VNI  `json:"vni"`
	Dst   MAC  `json:"dst"`
	Src   MAC  `json:"src"`
	Ports bool `json:"-"` // the protocol and the ports have decided too, as where a route has several next hops
}
