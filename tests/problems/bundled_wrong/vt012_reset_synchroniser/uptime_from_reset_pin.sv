// Wrong: the uptime counts from the release of the input.
module TopModule (
  input  logic       clk,
  input  logic       arst_n,
  output logic       rst_n,
  output logic [3:0] uptime
);

  logic [2:0] chain;

  always_ff @(posedge clk or negedge arst_n) begin
    if (!arst_n)
      chain <= 3'b000;
    else
      chain <= {chain[1:0], 1'b1};
  end

  assign rst_n = chain[2];

  always_ff @(posedge clk or negedge arst_n) begin
    if (!arst_n)
      uptime <= 4'd0;
    else if (arst_n && uptime != 4'd15)
      uptime <= uptime + 4'd1;
  end

endmodule
