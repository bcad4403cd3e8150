package contract

import "strings"

func imageCases() []Case {
	return []Case{
		{"image-lists", func(s *Session) {
			s.Bare("versions", get, "image", "/versions", nil)
			for _, query := range []string{
				"", "?name=Ubuntu%2024.04&status=active&sort=created_at:desc", "?name=nope", "?status=queued",
				"?name=in:%22Ubuntu%2024.04%20arm64%22,nope", "?os_type=windows", "?visibility=private", "?visibility=all&os_hidden=true",
				"?limit=1", "?limit=1&name=nope", "?sort_key=name&sort_dir=asc&limit=2", "?marker=" + nowhere, "?limit=many",
				"?sort=nonsense:desc", "?visibility=nonsense",
			} {
				s.Call("list"+query, get, "image", "/v2/images"+query, nil)
			}
			var names []string
			for _, image := range s.Quiet(get, "image", "/v2/images?sort_key=name&sort_dir=asc", nil).List("images") {
				names = append(names, text(image["name"]))
			}
			s.Note("names in order", strings.Join(names, ", "))
		}},
		{"image-shows", func(s *Session) {
			for _, name := range []string{"Ubuntu 24.04", "Ubuntu 24.04 arm64", "Windows Server 2022", "Needs 20 GB"} {
				s.Call(name, get, "image", "/v2/images/"+s.Image(name), nil)
			}
			s.Call("unknown", get, "image", "/v2/images/"+nowhere, nil)
			s.Call("no UUID", get, "image", "/v2/images/nope", nil)
		}},
	}
}
