package port

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/vxswitch/vxswitch/frame"
	"github.com/vxswitch/vxswitch/internal/lab/fake"
	"github.com/vxswitch/vxswitch/internal/lab/netns"
)

// openTAP opens a TAP inside the host and closes it with the test.
func openTAP(t *testing.T, h *netns.Host, name string, cfg *DeviceConfig) *Device {
	t.Helper()
	return netns.Open(t, h, func() (*Device, error) { return OpenTAP(name, cfg) })
}

// bridged returns two TAPs that the kernel's bridge joins: what is written to one
// is read from the other. Nobody else sends there.
func bridged(t *testing.T, cfg *DeviceConfig) (a, b *Device) {
	t.Helper()
	h := netns.New(t).Host("h")
	h.Quiet()
	a, b = openTAP(t, h, "tapa", cfg), openTAP(t, h, "tapb", cfg)
	h.Bridge("br0", "tapa", "tapb")
	return a, b
}

// has reports whether the host has the device.
func has(t *testing.T, h *netns.Host, dev string) bool {
	t.Helper()
	_, err := h.Try(t.Context(), "ip", "link", "show", dev)
	return err == nil
}

// guest answers ARP and ping for an address on a TAP until the TAP is closed. Then
// done gets the error of each queue.
func guest(tap *Device, ip string) (done chan error) {
	me, addr := net.HardwareAddr{0x02, 0, 0, 0, 0, 0xee}, net.ParseIP(ip).To4()
	done = make(chan error, len(tap.Readers()))
	answer := func(p []byte) []byte {
		pkt := gopacket.NewPacket(p, layers.LayerTypeEthernet, gopacket.Default)
		eth := pkt.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		eth.SrcMAC, eth.DstMAC = me, eth.SrcMAC
		buf := gopacket.NewSerializeBuffer()
		opt := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
		if arp, ok := pkt.Layer(layers.LayerTypeARP).(*layers.ARP); ok && net.IP(arp.DstProtAddress).Equal(addr) {
			arp.Operation = layers.ARPReply
			arp.DstHwAddress, arp.DstProtAddress = arp.SourceHwAddress, arp.SourceProtAddress
			arp.SourceHwAddress, arp.SourceProtAddress = me, addr
			gopacket.SerializeLayers(buf, opt, eth, arp)
			return buf.Bytes()
		}
		if icmp, ok := pkt.Layer(layers.LayerTypeICMPv4).(*layers.ICMPv4); ok && icmp.TypeCode.Type() == layers.ICMPv4TypeEchoRequest {
			v4 := pkt.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
			v4.SrcIP, v4.DstIP = v4.DstIP, v4.SrcIP
			icmp.TypeCode = layers.CreateICMPv4TypeCode(layers.ICMPv4TypeEchoReply, 0)
			gopacket.SerializeLayers(buf, opt, eth, v4, icmp, gopacket.Payload(icmp.Payload))
			return buf.Bytes()
		}
		return nil
	}
	for k, r := range tap.Readers() {
		go func() {
			b, w := frame.NewBatch(nil), tap.Writer(k)
			for {
				if err := r.Read(b); err != nil {
					done <- err
					return
				}
				for i := range b.Frames {
					if a := answer(b.Frames[i].Bytes()); a != nil {
						w.Write(fake.Outs(a))
					}
				}
			}
		}()
	}
	return done
}

func TestTAPKernelPingsAGuest(t *testing.T) {
	h := netns.New(t).Host("h")
	mac := frame.MAC{0x02, 0, 0, 0, 0, 0x11}
	tap := openTAP(t, h, "tap0", &DeviceConfig{MAC: mac})
	if got := h.MAC("tap0"); tap.Name() != "tap0" || tap.MTU(0) != 1514 || len(tap.Readers()) != 1 || got != mac.String() {
		t.Errorf("name %q, MTU %d, MAC %s", tap.Name(), tap.MTU(0), got)
	}
	h.Addr("tap0", "10.9.0.1/24")
	done := guest(tap, "10.9.0.2")
	h.Ping("10.9.0.2", 3)
	if err := tap.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Read of a closed TAP: %v", err)
	}
	if err := tap.Fit(1400); err != net.ErrClosed {
		t.Errorf("Fit of a closed TAP: %v", err)
	}
	if has(t, h, "tap0") {
		t.Error("the device is still there")
	}
}

func TestTAPPersistIsRespected(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	h.IP("tuntap", "add", "dev", "keep0", "mode", "tap")
	h.MTU("keep0", 1400)
	tap := openTAP(t, h, "keep0", nil)
	if tap.MTU(0) != 1414 {
		t.Errorf("MTU %d", tap.MTU(0))
	}
	var err error
	h.Do(func() { _, err = OpenTAP("keep0", nil) })
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "another program") {
		t.Errorf("second OpenTAP: %v", err)
	}
	tap.Close()
	if !has(t, h, "keep0") {
		t.Fatal("the persistent device is gone")
	}
	openTAP(t, h, "keep0", nil).Close()
	if !has(t, h, "keep0") {
		t.Error("the persistent device is gone after the second time")
	}
	if err := tap.Close(); err != nil {
		t.Errorf("Close again: %v", err)
	}
}

// With Existing a device is opened that somebody has made, and none is made.
func TestTAPExisting(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	existing := func(want error) {
		t.Helper()
		var d *Device
		var err error
		h.Do(func() { d, err = OpenTAP("keep0", &DeviceConfig{Existing: true}) })
		if !errors.Is(err, want) || want != nil && !strings.HasPrefix(err.Error(), `port: TAP "keep0": `) {
			t.Errorf("%v, want %v", err, want)
		}
		if err == nil {
			if !d.Existed() {
				t.Error("it did not exist")
			}
			d.Close()
		}
	}
	existing(syscall.ENODEV)
	if has(t, h, "keep0") {
		t.Error("it was made")
	}
	d := openTAP(t, h, "keep0", nil)
	if d.Existed() {
		t.Error("it existed")
	}
	existing(syscall.EBUSY)
	d.Close()
	h.IP("tuntap", "add", "dev", "keep0", "mode", "tap")
	existing(nil)
	existing(nil)
	if !has(t, h, "keep0") {
		t.Error("it is gone")
	}
}

// A persistent TAP is opened by another name that it has, which is that of the port.
func TestTAPAlternativeName(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	h.IP("tuntap", "add", "dev", "eth0", "mode", "tap", "multi_queue")
	h.IP("link", "property", "add", "dev", "eth0", "altname", "pod7")
	d := openTAP(t, h, "pod7", &DeviceConfig{Queues: 2, Existing: true})
	if d.Name() != "pod7" || !d.Existed() {
		t.Errorf("%q, existed: %v", d.Name(), d.Existed())
	}
	d.Close()
	if !has(t, h, "eth0") {
		t.Error("the persistent device is gone")
	}
}

// refused checks the error of an Open: what it says, and what it wraps if is is not nil.
func refused(t *testing.T, d io.Closer, err error, says string, is error) {
	t.Helper()
	if err == nil {
		d.Close()
		t.Errorf("no error, want %s", says)
	} else if !strings.Contains(err.Error(), says) || is != nil && !errors.Is(err, is) {
		t.Errorf("%v, want %s", err, says)
	}
}

func TestTAPOpenErrors(t *testing.T) {
	h := netns.New(t).Host("h")
	h.IP("tuntap", "add", "dev", "tun0", "mode", "tun")
	h.IP("tuntap", "add", "dev", "multi0", "mode", "tap", "multi_queue")
	h.IP("tuntap", "add", "dev", "single0", "mode", "tap")
	h.IP("link", "add", "veth0", "type", "veth", "peer", "veth1")
	for _, c := range []struct {
		name string
		cfg  *DeviceConfig
		is   error
		says string
	}{
		{"sixteen-bytes-xx", nil, nil, `port: TAP name "sixteen-bytes-xx": longer than 15 bytes`},
		{"a/b", nil, syscall.EINVAL, "not a device name"},
		{"tun0", nil, syscall.EINVAL, `port: TAP "tun0": the device is a TUN, not a TAP: invalid argument`},
		{"multi0", nil, syscall.EINVAL, "the device is for several queues: it was made with multi_queue"},
		{"single0", &DeviceConfig{Queues: 2}, syscall.EINVAL, "the device has a single queue: it was made without multi_queue"},
		{"veth0", nil, syscall.EINVAL, "a device of another driver, veth"},
		{"lo", nil, syscall.EINVAL, "the device is not a TAP or TUN"},
		{"t", &DeviceConfig{Queues: -1}, nil, "Queues: -1"},
		{"t", &DeviceConfig{Queues: 257}, nil, "Queues: 257"},
		{"t", &DeviceConfig{BusyPoll: -1}, nil, "BusyPoll: -1ns"},
		{"t", &DeviceConfig{BusyPoll: 2 * time.Millisecond}, nil, "BusyPoll: 2ms"},
		{"t", &DeviceConfig{Namespace: "no-such"}, os.ErrNotExist, `port: TAP "t": DeviceConfig.Namespace "no-such": no such file`},
		{"t", &DeviceConfig{Namespace: "/dev/null"}, syscall.EINVAL, `port: TAP "t": DeviceConfig.Namespace "/dev/null": entering the network namespace`},
		{"t", &DeviceConfig{MTU: -1}, nil, "MTU: -1"},
		{"t", &DeviceConfig{MTU: 1 << 20}, nil, "MTU: 1048576"},
		{"t", &DeviceConfig{MAC: frame.Broadcast}, nil, "must be the MAC of one host"},
	} {
		h.Do(func() {
			tap, err := OpenTAP(c.name, c.cfg)
			refused(t, tap, err, c.says, c.is)
		})
	}
	if has(t, h, "t") {
		t.Error("a device is left after an error")
	}
	tap := openTAP(t, h, "auto%d", nil)
	if tap.Name() != "auto0" || !has(t, h, "auto0") {
		t.Errorf("device %q for auto%%d", tap.Name())
	}
}

func TestTAPFollowsItsDevice(t *testing.T) {
	n := netns.New(t)
	h, far := n.Host("h"), n.Host("far")
	h.Quiet()
	tap := openTAP(t, h, "tap0", nil)
	check := func(want int) {
		t.Helper()
		tap.update()
		if got := tap.MTU(0); got != want+ethLen {
			t.Errorf("MTU %d, want %d", got, want+ethLen)
		}
	}
	h.MTU("tap0", 1450)
	check(1450)
	h.IP("link", "set", "tap0", "down")
	h.IP("link", "set", "tap0", "name", "other0")
	h.MTU("other0", 1300)
	check(1300)
	h.IP("link", "set", "other0", "netns", far.NS)
	h.IP("tuntap", "add", "dev", "other0", "mode", "tap") // a namesake where it was
	check(1300)
	far.MTU("other0", 8000)
	check(8000)
	far.Up("other0")
	far.Addr("other0", "10.9.0.1/24")
	done := guest(tap, "10.9.0.2")
	far.Ping("10.9.0.2", 2)
	tap.Close()
	<-done
	if has(t, far, "other0") || !has(t, h, "other0") {
		t.Error("Close removed the wrong device")
	}
}

func TestTAPOffloadsOfAnEarlierOwner(t *testing.T) {
	h := netns.New(t).Host("h")
	h.Quiet()
	h.IP("tuntap", "add", "dev", "keep0", "mode", "tap", "vnet_hdr")
	h.Do(func() {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		must(t, err)
		defer unix.Close(fd)
		ifr, _ := unix.NewIfreq("keep0")
		ifr.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		must(t, unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr))
		must(t, unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, unix.TUN_F_CSUM|unix.TUN_F_TSO4))
	})
	const on = "tx-checksum-ip-generic: on"
	if out := h.Run("ethtool", "-k", "keep0"); !strings.Contains(out, on) {
		t.Log("the kernel forgets offloads by itself")
	}
	openTAP(t, h, "keep0", &DeviceConfig{NoOffload: true}).Close()
	if out := h.Run("ethtool", "-k", "keep0"); strings.Contains(out, on) {
		t.Errorf("offloads are still on:\n%s", out)
	}
	tap := openTAP(t, h, "keep0", nil)
	for _, want := range []string{on, "tx-tcp-segmentation: on", "tx-tcp6-segmentation: on", "tx-udp-segmentation: on"} {
		if out := h.Run("ethtool", "-k", "keep0"); !strings.Contains(out, want) {
			t.Errorf("not %s:\n%s", want, out)
		}
	}
	tap.Close()
	if out := h.Run("ethtool", "-k", "keep0"); strings.Contains(out, on) {
		t.Errorf("offloads are on after Close:\n%s", out)
	}
}
