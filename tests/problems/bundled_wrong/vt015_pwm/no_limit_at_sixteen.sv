// Wrong: the step is compared with the low four bits of the duty.
module TopModule (
  input  logic       clk,
  input  logic       rst_n,
  input  logic       write,
  input  logic [4:0] duty,
  output logic       pwm,
  output logic       period_start
);

  logic [3:0] step;
  logic [4:0] pending;
  logic [4:0] active;

  wire [4:0] limited = (duty > 5'd16) ? 5'd16 : duty;
  wire [4:0] newest  = write ? limited : pending;

  always_ff @(posedge clk) begin
    if (!rst_n) begin
      step <= 4'd0;
      pending <= 5'd0;
      active <= 5'd0;
    end else begin
      step <= step + 4'd1;
      pending <= newest;
      if (step == 4'd15) active <= newest;
    end
  end

  assign pwm = (step < active[3:0]);
  assign period_start = (step == 4'd0);

endmodule
