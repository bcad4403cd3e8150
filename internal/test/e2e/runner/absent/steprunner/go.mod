module gitlab.com/gitlab-org/step-runner

go 1.26.0

require (
	gitlab.com/gitlab-org/moa v0.0.0
	google.golang.org/protobuf v1.36.12
)

replace gitlab.com/gitlab-org/moa => ../moa
