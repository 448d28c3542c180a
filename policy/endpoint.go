package policy

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/vxswitch/vxswitch/internal/wire"
	"github.com/vxswitch/vxswitch/setting"
)

// An Endpoint is an address with a port of a protocol: a member of a set of ports. As text it is "10.0.0.1,tcp:80" or
// "fd00::1,132:80".
type Endpoint struct {
	Addr     netip.Addr
	Protocol uint8
	Port     uint16
}

var protocolNames = map[string]uint8{"tcp": wire.ProtoTCP, "udp": wire.ProtoUDP, "sctp": protoSCTP}

// String returns the endpoint as in settings.
func (e Endpoint) String() string {
	protocol := strconv.Itoa(int(e.Protocol))
	for name, n := range protocolNames {
		if n == e.Protocol {
			protocol = name
		}
	}
	return fmt.Sprintf("%v,%s:%d", e.Addr, protocol, e.Port)
}

// MarshalText implements [encoding.TextMarshaler].
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (e *Endpoint) UnmarshalText(text []byte) error {
	ip, service, _ := strings.Cut(string(text), ",")
	protocol, port, _ := strings.Cut(service, ":")
	addr, err := netip.ParseAddr(ip)
	number, named := protocolNames[protocol]
	if !named {
		n, err2 := strconv.ParseUint(protocol, 10, 8)
		number = uint8(n)
		if err == nil {
			err = err2
		}
	}
	n, err3 := strconv.ParseUint(port, 10, 16)
	x := Endpoint{addr, number, uint16(n)}
	if err != nil || err3 != nil || !x.valid() {
		return &setting.Error{Value: string(text), Allowed: endpointForm}
	}
	*e = x
	return nil
}

const endpointForm = "an address, a protocol with ports and a port, such as 10.0.0.1,tcp:80 or fd00::1,132:80"

func (e Endpoint) valid() bool {
	return e.Addr.IsValid() && e.Addr.Zone() == "" && !e.Addr.Is4In6() && hasPorts(e.Protocol)
}

func (e Endpoint) prefix() netip.Prefix { return netip.PrefixFrom(e.Addr, e.Addr.BitLen()) }

func (e Endpoint) service() uint32 { return serviceOf(e.Protocol, e.Port) }

// serviceOf returns a protocol and a port as one number, which is not 0.
func serviceOf(protocol uint8, port uint16) uint32 { return uint32(protocol)<<16 | uint32(port) }
