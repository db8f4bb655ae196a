# SPDX-License-Identifier: Apache-2.0
"""No secret of the environment is in any byte of a capture; what explains a run is."""

from victim import VictimTest, main, victim

SECRET = "c0ffee-hunter2"
SECRETS = ["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "HF_TOKEN", "WANDB_API_KEY", "NCCL_MY_TOKEN", "CUDA_LICENSE_KEY", "TORCH_HUB_PASSWORD",
           "SLURM_JWT", "PMIX_SERVER_URI", "OMPI_MCA_SECRET", "GITHUB_TOKEN", "DATABASE_URL", "RANKSCOPE_UNKNOWN", "nccl_token", "PYTORCH_API_KEY",
           "NCCL_CREDENTIALS", "SLURM_SECRET", "CUDA_PASSWD", "UNRELATED",
           "NCCL_SOCKET_PASS", "CUDA_X_PWD", "NCCL_PRIVATE", "PYTORCH_DB_DSN", "TORCH_URL", "PMI_BEARER", "TORCHELASTIC_X"]
TOLD = {"NCCL_ALGO": "Ring", "CUDA_DEVICE_MAX_CONNECTIONS": "1", "RANK": "3", "WORLD_SIZE": "8", "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1"}


class Secrets(VictimTest):
    def test_secrets_stay_out_of_every_byte(self):
        environment = {name: SECRET + name for name in SECRETS} | TOLD | {"NCCL_CONF_FILE": f"https://me:{SECRET}@host/nccl.conf"}
        for how in ("return", "kill"):
            with self.subTest(how=how):
                self.compare(victim("ends"), how, 100, environment=environment)
                files = list(self.capture_folder.iterdir())
                self.assertGreater(len(files), 0)
                for path in files:
                    content = path.read_bytes()
                    self.assertEqual([name for name in SECRETS if (SECRET + name).encode() in content], [], path.name)
                    self.assertNotIn(SECRET.encode(), content, path.name)
                self.assertTrue(any(b"https://***@host/nccl.conf" in path.read_bytes() for path in files))

    def test_what_explains_the_run_is_told(self):
        self.compare(victim("ends"), "return", 100, environment=TOLD)
        capture = self.one_capture()
        told = {record["key"]: record["value"] for record in capture.of("metadata")}
        for name, value in TOLD.items():
            self.assertEqual(told.get(f"env.{name}"), value)
        self.assertEqual((capture.header["rank"], capture.header["worldSize"]), (3, 8))


if __name__ == "__main__":
    main()
