// Wrong: the reset acts only at a clock edge.
module TopModule (
  input  logic       clk,
  input  logic       arst_n,
  output logic       rst_n,
  output logic [3:0] uptime
);

  logic [2:0] chain;

  always_ff @(posedge clk) begin
    if (!arst_n) begin
      chain <= 3'b000;
      uptime <= 4'd0;
    end else begin
      chain <= {chain[1:0], 1'b1};
      if (rst_n && uptime != 4'd15) uptime <= uptime + 4'd1;
    end
  end

  assign rst_n = chain[2];

endmodule
