module gitlab.com/gitlab-org/gitlab-runner/helpers/runner_wrapper/api

go 1.26.0
