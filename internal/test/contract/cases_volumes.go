package contract

func volumeCases() []Case {
	return []Case{
		{"volume-boot", func(s *Session) {
			path := s.Adopt(s.Call("create", post, "compute", "/servers", s.Spec("contract-volume", bootVolume(s, "", 5))))
			s.State(path, "ACTIVE")
			shown := s.Call("show", get, "compute", path, nil)
			s.Call("attachments", get, "compute", path+"/os-volume_attachments", nil)
			volumes := objects(shown.At("server", "os-extended-volumes:volumes_attached"))
			if len(volumes) != 1 {
				s.fail("volumes: %v", volumes)
				return
			}
			volume := "/volumes/" + text(volumes[0]["id"])
			s.Call("volume", get, "volume", volume, nil)
			s.Call("list", get, "volume", "/volumes/detail", nil)
			s.Call("delete while it is attached", del, "volume", volume, nil)
			s.Gone(path)
			s.Until("the end of the volume", "volume", volume, func(r Reply) bool { return r.Status == 404 })
			s.Call("volume after the end", get, "volume", volume, nil)
		}},
		{"volume-type", func(s *Session) {
			for _, kind := range s.Quiet(get, "volume", "/types", nil).List("volume_types") {
				if kind["name"] == "lab" {
					s.Note("type", kind)
				}
			}
			path := s.Adopt(s.Call("create", post, "compute", "/servers", s.Spec("contract-typed", bootVolume(s, "lab", 1))))
			s.State(path, "ACTIVE")
			s.Call("unknown type", post, "compute", "/servers", s.Spec("contract-x", bootVolume(s, "nope", 1)))
			s.Call("no size", post, "compute", "/servers", s.Spec("contract-x", bootVolume(s, "", 0)))
			small := bootVolume(s, "", 1)
			small["flavorRef"] = s.Flavor("m1.large")
			devices, ok := small["block_device_mapping_v2"].([]any)
			if ok {
				devices[0] = device(s.Image("Needs 20 GB"), "", 1)
			}
			s.Call("too small for the image", post, "compute", "/servers", s.Spec("contract-x", small))
		}},
		{"volume-types", func(s *Session) { s.Call("types", get, "volume", "/types", nil) }},
		{"volume-zones", func(s *Session) { s.Call("zones", get, "volume", "/os-availability-zone", nil) }},
		{"volume-quota", func(s *Session) {
			s.Tiny()
			path := s.Adopt(s.Call("create", post, "compute", "/servers", s.Spec("contract-volume", bootVolume(s, "", 50))))
			s.State(path, "ERROR")
			// Whether it still has addresses is a race in Nova.
			s.Note("fault", s.Quiet(get, "compute", path, nil).At("server", "fault"))
		}},
	}
}

// bootVolume is what makes a server boot from a new volume of some GiB.
func bootVolume(s *Session, kind string, size int) object {
	return object{
		"imageRef": "", "flavorRef": s.Flavor("m1.nodisk"),
		"block_device_mapping_v2": []any{device(s.Image("Ubuntu 24.04"), kind, size)},
	}
}

func device(image, kind string, size int) object {
	d := object{
		"boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": image, "delete_on_termination": true,
	}
	if size > 0 {
		d["volume_size"] = size
	}
	if kind != "" {
		d["volume_type"] = kind
	}
	return d
}
