package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	nfpmdeb "github.com/goreleaser/nfpm/v2/deb"
	nfpmfiles "github.com/goreleaser/nfpm/v2/files"
)

const description = `virtual switch and VXLAN tunnel end point in user space
vxswitchd connects TAP devices and interfaces to Ethernet segments over
VXLAN, VXLAN-GPE and IP-in-IP, with gateways, routes and policies, from a
file or through its control socket. vxsctl shows and changes a running node.
vxflanneld takes the place of flanneld, and vxswitch-cni attaches containers.`

// deb returns the Debian package. nfpm reads files, so what is to be packed is written into a folder first.
func deb(b *built, list []file) ([]byte, error) {
	dir, err := os.MkdirTemp("", "vxswitch-deb-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	n := 0
	stage := func(data []byte) (name string) {
		n++
		name = filepath.Join(dir, strconv.Itoa(n))
		if e := os.WriteFile(name, data, 0o644); e != nil && err == nil {
			err = e
		}
		return name
	}
	info := &nfpm.Info{
		Name: "vxswitch", Arch: b.arch, Version: b.debVersion(), VersionSchema: "none", MTime: b.time, DisableGlobbing: true,
		Section: "net", Priority: "optional", License: "Apache-2.0",
		Maintainer: "The vxswitch authors <vxswitch@users.noreply.github.com>", Homepage: "https://github.com/vxswitch/vxswitch",
		Description: description,
	}
	for _, f := range list {
		if f.deb == "" {
			continue
		}
		switch {
		case strings.HasSuffix(f.deb, ".service"):
			f.data = bytes.ReplaceAll(f.data, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
		case strings.HasPrefix(f.deb, "/usr/share/man/"), strings.HasSuffix(f.deb, "/CHANGELOG.md"):
			f.deb += ".gz"
			if f.data, err = compress(f.data); err != nil {
				return nil, err
			}
		}
		c := &nfpmfiles.Content{Source: stage(f.data), Destination: f.deb, FileInfo: &nfpmfiles.ContentFileInfo{Owner: "root", Group: "root", Mode: f.mode, MTime: b.time}}
		if f.conf {
			c.Type = nfpmfiles.TypeConfigNoReplace
		}
		info.Contents = append(info.Contents, c)
	}
	info.Scripts = nfpm.Scripts{PostInstall: stage([]byte(postinst)), PreRemove: stage([]byte(prerm)), PostRemove: stage([]byte(postrm))}
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = nfpmdeb.Default.Package(nfpm.WithDefaults(info), &out)
	return out.Bytes(), err
}

// What dpkg runs. The node starts when its user enables it; an upgrade starts one that runs again, with the new program.
const (
	postinst = `#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	[ -z "$2" ] || systemctl try-restart vxswitchd.service
fi
`
	prerm = `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now vxswitchd.service
fi
`
	postrm = `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
`
)
